#include "lib/formats/torch_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "lib/formats/bad_input.h"

namespace trainwright {
namespace {

using Kind = TorchValue::Kind;
constexpr size_t kMaxPickleBytes = size_t{256} << 20;
// What a pickle of this size that tells of tensors stays below, and a hostile one may not exceed.
constexpr size_t kMaxMemo = 1 << 26, kMaxValues = 1 << 25, kMaxStack = 1 << 22, kMaxParts = 1 << 26;
constexpr int64_t kSharedIntegers = 1 << 18;  // which ids mostly are below

struct StorageName {
  const char* name;
  IntegerType type;
  bool is_truth = false;
  uint64_t float_one = 0;
};
constexpr StorageName kStorages[] = {{"torch ByteStorage", {1, false}},
                                     {"torch CharStorage", {1, true}},
                                     {"torch ShortStorage", {2, true}},
                                     {"torch IntStorage", {4, true}},
                                     {"torch LongStorage", {8, true}},
                                     {"torch uint16", {2, false}},
                                     {"torch uint32", {4, false}},
                                     {"torch uint64", {8, false}},
                                     {"torch BoolStorage", {1, false}, true},
                                     {"torch FloatStorage", {4, false}, false, 0x3F800000},
                                     {"torch DoubleStorage", {8, false}, false, 0x3FF0000000000000},
                                     {"torch HalfStorage", {2, false}, false, 0x3C00},
                                     {"torch BFloat16Storage", {2, false}, false, 0x3F80}};

// "torch LongStorage" as Python spells it.
std::string Dotted(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '.');
  return name;
}

// What the stack holds: finished values, and what only exists while a pickle runs.
constexpr int kMaxDepth = 64;           // of tuples in tuples
constexpr size_t kMaxNameBytes = 1000;  // of keys, which are copied

struct Slot {
  enum class Role { kValue, kMark, kName, kStorage } role = Role::kValue;
  TorchValue* value = nullptr;
  std::shared_ptr<const std::vector<Slot>> parts;  // of a tuple
  int depth = 0;                                   // of tuples in tuples
  std::string name;                                // of kName: "module name"; of kStorage: the entry
  const StorageName* elements = nullptr;           // of kStorage; nullptr: it does not say
};

/// By number, whether a pickle recalls what it keeps under it: Python keeps nearly everything, and recalls
/// little. Up to the first instruction that is not read.
std::vector<bool> RecalledNumbers(ByteSpan pickle) {
  std::vector<bool> recalled;
  const auto recall = [&](size_t number) {
    if (number > kMaxMemo) return;
    if (number >= recalled.size()) recalled.resize(number + 1);
    recalled[number] = true;
  };
  ByteParser parser(pickle);
  const auto skip_line = [&] {
    while (!parser.failed() && parser.Read<uint8_t>() != '\n') {
    }
  };
  while (!parser.failed()) {
    switch (parser.Read<uint8_t>()) {
      case '.':
        return recalled;
      case 'h':
        recall(parser.Read<uint8_t>());
        break;
      case 'j':
        recall(parser.Read<uint32_t>());
        break;
      case 0x80:
      case 'K':
      case 'q':
        parser.ReadBytes(1);
        break;
      case 'M':
        parser.ReadBytes(2);
        break;
      case 'J':
      case 'r':
        parser.ReadBytes(4);
        break;
      case 'G':
      case 0x95:
        parser.ReadBytes(8);
        break;
      case 0x8A:
      case 0x8C:
        parser.ReadBytes(parser.Read<uint8_t>());
        break;
      case 'X':
        parser.ReadBytes(parser.Read<uint32_t>());
        break;
      case 'c':
        skip_line();
        skip_line();
        break;
      default:  // has no operand, or Step refuses it
        break;
    }
  }
  return recalled;
}

class Unpickler {
 public:
  Unpickler(ByteSpan pickle, const ZipArchive& archive, std::string prefix)
      : parser_(pickle), archive_(archive), prefix_(std::move(prefix)), recalled_(RecalledNumbers(pickle)) {}

  TorchTree Run() {
    while (true) {
      const auto op = parser_.Read<uint8_t>();
      if (parser_.failed()) throw Refuse("it is cut short");
      if (op == '.') break;
      Step(op);
      if (parser_.failed()) throw Refuse("it is cut short");
    }
    const Slot last = Pop();
    if (last.role != Slot::Role::kValue) throw Refuse("it ends with no value");
    tree_.root = last.value;
    return std::move(tree_);
  }

 private:
  Error Refuse(const std::string& why) const {
    return BadInputAt(parser_.position(), archive_.name() + ", " + prefix_ + "data.pkl", why);
  }

  void Step(uint8_t op) {
    switch (op) {
      case 0x80:
        if (parser_.Read<uint8_t>() > 5) throw Refuse("is a pickle of an unknown protocol");
        return;
      case 0x95:
        parser_.Read<uint64_t>();  // a frame of protocol 4: its instructions follow
        return;
      case '(':
        return Push({.role = Slot::Role::kMark, .value = nullptr, .parts = nullptr, .name = ""});
      case '}':
        return PushNew(Kind::kDictionary);
      case ']':
      case ')':
        return PushNew(Kind::kList);
      case 'N':
        return PushNew(Kind::kOther);
      case 0x88:
      case 0x89:
        return PushTruth(op == 0x88);
      case 'G':
        return PushFloat();
      case 'K':
        return PushInteger(parser_.Read<uint8_t>());
      case 'M':
        return PushInteger(parser_.Read<uint16_t>());
      case 'J':
        return PushInteger(parser_.Read<int32_t>());
      case 0x8A:
        return PushLong();
      case 'X':
        return PushText(parser_.ReadBytes(parser_.Read<uint32_t>()));
      case 0x8C:
        return PushText(parser_.ReadBytes(parser_.Read<uint8_t>()));
      case 'q':
        return Memoize(parser_.Read<uint8_t>());
      case 'r':
        return Memoize(parser_.Read<uint32_t>());
      case 0x94:
        return Memoize(memoized_);
      case 'h':
        return Recall(parser_.Read<uint8_t>());
      case 'j':
        return Recall(parser_.Read<uint32_t>());
      case 't':
        return PushList(PopToMark());
      case 0x85:
        return PushList(PopSeveral(1));
      case 0x86:
        return PushList(PopSeveral(2));
      case 0x87:
        return PushList(PopSeveral(3));
      case 'a':
        return Append(PopSeveral(1));
      case 'e':
        return Append(PopToMark());
      case 's':
        return SetItems(PopSeveral(2));
      case 'u':
        return SetItems(PopToMark());
      case 'c': {
        const std::string module = Line(), name = Line();
        return PushName(module + " " + name);
      }
      case 0x93: {
        const std::vector<Slot> parts = PopSeveral(2);
        return PushName(TextOf(parts[0]) + " " + TextOf(parts[1]));
      }
      case 'Q':
        return PushStorage(Pop());
      case 'R':
        return Reduce();
      default: {
        constexpr char kDigits[] = "0123456789abcdef";
        throw Refuse(std::string("uses pickle instruction 0x") + kDigits[op >> 4] + kDigits[op & 15] +
                     ", which tensors, lists and dictionaries do not need");
      }
    }
  }

  std::string Line() {
    std::string line;
    while (!parser_.failed()) {
      const auto byte = parser_.Read<uint8_t>();
      if (byte == '\n' || line.size() > 1000) break;
      line += static_cast<char>(byte);
    }
    return line;
  }

  void RequireRoom(bool has_room) const {
    if (!has_room) throw Refuse("holds more values than are read of one file: save several");
  }
  void Push(Slot slot) {
    RequireRoom(stack_.size() < kMaxStack);
    stack_.push_back(std::move(slot));
  }
  void PushShared(TorchValue* value) { Push({.value = value, .parts = nullptr, .name = ""}); }
  TorchValue* Keep(TorchValue value) {
    RequireRoom(tree_.values.size() < kMaxValues);
    tree_.values.push_back(std::move(value));
    return &tree_.values.back();
  }
  void PushValue(TorchValue value) { PushShared(Keep(std::move(value))); }
  void PushNew(Kind kind) {
    TorchValue value;
    value.kind = kind;
    PushValue(std::move(value));
  }
  TorchValue* KeepNumber(Kind kind, int64_t number) {
    TorchValue value;
    value.kind = kind;
    value.integer = number;
    return Keep(std::move(value));
  }
  // Nothing changes a number, so one value stands for all that are alike.
  void PushInteger(int64_t integer) {
    if (integer < 0 || integer >= kSharedIntegers) return PushShared(KeepNumber(Kind::kInteger, integer));
    if (integers_.empty()) integers_.resize(kSharedIntegers);
    TorchValue*& shared = integers_[static_cast<size_t>(integer)];
    if (shared == nullptr) shared = KeepNumber(Kind::kInteger, integer);
    PushShared(shared);
  }
  void PushTruth(bool truth) {
    TorchValue*& shared = truths_[truth ? 1 : 0];
    if (shared == nullptr) shared = KeepNumber(Kind::kTruth, truth ? 1 : 0);
    PushShared(shared);
  }
  void PushLong() {
    const ByteSpan bytes = parser_.ReadBytes(parser_.Read<uint8_t>());
    if (bytes.size() > 8) throw Refuse("holds an integer of more than 64 bits");
    uint64_t bits = !bytes.empty() && bytes.back() >= 128 ? UINT64_MAX : 0;
    if (!bytes.empty()) std::memcpy(&bits, bytes.data(), bytes.size());
    PushInteger(static_cast<int64_t>(bits));
  }
  void PushFloat() {
    uint64_t bits = 0;
    for (const uint8_t byte : parser_.ReadBytes(8)) bits = (bits << 8) | byte;  // big-endian
    TorchValue value;
    value.kind = Kind::kFloat;
    value.number = std::bit_cast<double>(bits);
    PushValue(std::move(value));
  }
  void PushText(ByteSpan text) {
    TorchValue value;
    value.kind = Kind::kText;
    value.text = AsText(text);
    PushValue(std::move(value));
  }
  void PushName(const std::string& name) {
    static constexpr const char* kKnown[] = {"collections OrderedDict", "torch._utils _rebuild_tensor_v2",
                                             "torch._utils _rebuild_tensor_v3",
                                             "torch.storage UntypedStorage"};
    const auto is_name = [&](const char* known) { return name == known; };
    const bool known = std::any_of(std::begin(kKnown), std::end(kKnown), is_name) ||
                       std::any_of(std::begin(kStorages), std::end(kStorages),
                                   [&](const StorageName& storage) { return name == storage.name; });
    if (!known) {
      throw Refuse("names " + Dotted(name) +
                   ", and only tensors of numbers, lists and dictionaries are read");
    }
    Push({.role = Slot::Role::kName, .value = nullptr, .parts = nullptr, .name = name});
  }

  void Memoize(size_t number) {
    if (stack_.empty() || number > kMaxMemo || stack_.back().role == Slot::Role::kMark)
      throw Refuse("is corrupt: it keeps what is not there");
    ++memoized_;
    if (number < recalled_.size() && recalled_[number]) memo_[number] = stack_.back();
  }
  void Recall(size_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) throw Refuse("is corrupt: it recalls what it never kept");
    Push(found->second);
  }

  Slot Pop() {
    if (stack_.empty() || stack_.back().role == Slot::Role::kMark)
      throw Refuse("is corrupt: its stack runs empty");
    Slot slot = std::move(stack_.back());
    stack_.pop_back();
    return slot;
  }
  std::vector<Slot> PopSeveral(size_t count) {
    std::vector<Slot> slots(count);
    while (count-- > 0) slots[count] = Pop();
    return slots;
  }
  std::vector<Slot> PopToMark() {
    std::vector<Slot> slots;
    while (!stack_.empty() && stack_.back().role != Slot::Role::kMark) slots.push_back(Pop());
    if (stack_.empty()) throw Refuse("is corrupt: a mark is missing");
    stack_.pop_back();
    std::reverse(slots.begin(), slots.end());
    return slots;
  }

  // A tuple may be the arguments of a call, with names and storages in it.
  void PushList(std::vector<Slot> slots) {
    static const TorchValue kNoValue;
    TorchValue list;
    list.kind = Kind::kList;
    int depth = 0;
    for (const Slot& slot : slots) {
      list.items.push_back(IsPlain(slot) ? slot.value : &kNoValue);
      depth = std::max(depth, slot.depth + 1);
    }
    if (depth > kMaxDepth) throw Refuse("nests tuples too deep");
    parts_ += slots.size();
    RequireRoom(parts_ <= kMaxParts);
    PushValue(std::move(list));
    stack_.back().depth = depth;
    stack_.back().parts = std::make_shared<const std::vector<Slot>>(std::move(slots));
  }

  TorchValue* Container(Kind kind) {
    if (stack_.empty() || stack_.back().role != Slot::Role::kValue || stack_.back().value->kind != kind)
      throw Refuse("is corrupt: it fills what is no list or dictionary");
    return stack_.back().value;
  }
  static bool IsPlain(const Slot& slot) { return slot.role == Slot::Role::kValue && slot.value != nullptr; }

  const TorchValue* Item(const Slot& slot) const {
    if (!IsPlain(slot)) throw Refuse("is corrupt: a container holds what is no value");
    return slot.value;
  }

  void Append(const std::vector<Slot>& slots) {
    TorchValue* list = Container(Kind::kList);
    for (const Slot& slot : slots) list->items.push_back(Item(slot));
  }
  void SetItems(const std::vector<Slot>& slots) {
    TorchValue* dictionary = Container(Kind::kDictionary);
    if (slots.size() % 2 != 0) throw Refuse("is corrupt: a key has no value");
    for (size_t i = 0; i < slots.size(); i += 2) {
      dictionary->keys.push_back(TextOf(slots[i]));
      dictionary->items.push_back(Item(slots[i + 1]));
    }
  }

  std::string TextOf(const Slot& slot) const {
    if (IsPlain(slot) && slot.value->kind == Kind::kText) {
      if (slot.value->text.size() > kMaxNameBytes) throw Refuse("has a key of over 1000 bytes");
      return slot.value->text;
    }
    if (IsPlain(slot) && slot.value->kind == Kind::kInteger) return std::to_string(slot.value->integer);
    throw Refuse("has a key that is no text");
  }
  static int64_t IntegerOf(const TorchValue* value, bool* good) {
    if (value == nullptr || value->kind != Kind::kInteger || value->integer < 0) {
      *good = false;
      return 0;
    }
    return value->integer;
  }

  const std::vector<Slot>& ArgumentsOf(const Slot& slot) const {
    static const std::vector<Slot> none;
    if (slot.parts) return *slot.parts;
    if (IsPlain(slot) && slot.value->kind == Kind::kList && slot.value->items.empty()) return none;
    throw Refuse("is corrupt: a call has no arguments");
  }

  // ('storage', type, key, device, number of elements)
  void PushStorage(const Slot& slot) {
    const std::vector<Slot>& parts = ArgumentsOf(slot);
    if (parts.size() != 5 || parts[1].role != Slot::Role::kName || TextOf(parts[0]) != "storage")
      throw Refuse("is corrupt: a storage is not described as PyTorch does");
    Slot storage{.role = Slot::Role::kStorage,
                 .value = nullptr,
                 .parts = nullptr,
                 .name = prefix_ + "data/" + TextOf(parts[2])};
    for (const StorageName& known : kStorages) {
      if (parts[1].name == known.name) storage.elements = &known;
    }
    if (storage.elements == nullptr && parts[1].name != "torch.storage UntypedStorage")
      throw Refuse("is corrupt: a storage is not described as PyTorch does");
    Push(storage);
  }

  void Reduce() {
    const Slot arguments = Pop(), function = Pop();
    if (function.role != Slot::Role::kName) throw Refuse("is corrupt: it calls what is no function");
    const std::vector<Slot>& parts = ArgumentsOf(arguments);
    if (function.name == "collections OrderedDict" && parts.empty()) return PushNew(Kind::kDictionary);
    const bool version3 = function.name == "torch._utils _rebuild_tensor_v3";
    if ((function.name != "torch._utils _rebuild_tensor_v2" && !version3) ||
        parts.size() < (version3 ? 7 : 6) || parts[0].role != Slot::Role::kStorage || !IsPlain(parts[2]) ||
        !IsPlain(parts[3])) {
      throw Refuse("is corrupt: a tensor is not described as PyTorch does");
    }
    TorchValue value;
    value.kind = Kind::kTensor;
    value.tensor = std::make_unique<TorchTensor>();
    TorchTensor& tensor = *value.tensor;
    const StorageName* type = parts[0].elements;
    if (version3 && parts[6].role == Slot::Role::kName) {
      for (const StorageName& known : kStorages) {
        if (parts[6].name == known.name) type = &known;
      }
    }
    if (type == nullptr) throw Refuse("holds a tensor whose type is not one of integers");
    tensor.type = type->type;
    tensor.is_truth = type->is_truth;
    tensor.float_one = type->float_one;
    tensor.storage_type = Dotted(type->name);
    tensor.storage = parts[0].name;
    bool good = true;
    const int64_t offset = IntegerOf(parts[1].value, &good);
    std::vector<uint64_t> strides;
    for (const TorchValue* item : parts[2].value->items)
      tensor.shape.push_back(static_cast<uint64_t>(IntegerOf(item, &good)));
    for (const TorchValue* item : parts[3].value->items)
      strides.push_back(static_cast<uint64_t>(IntegerOf(item, &good)));
    if (!good || strides.size() != tensor.shape.size())
      throw Refuse("is corrupt: a tensor's shape is impossible");
    const ZipEntry* entry = archive_.Find(tensor.storage);
    if (entry == nullptr) throw Refuse("is corrupt: storage " + tensor.storage + " is missing");
    const uint64_t elements = entry->content_bytes / static_cast<uint64_t>(tensor.type.bytes);
    uint64_t count = 1;
    for (const uint64_t size : tensor.shape) {
      if (size != 0 && count > elements / size)
        throw Refuse("is corrupt: a tensor is larger than its storage");
      count *= size;
    }
    if (static_cast<uint64_t>(offset) > elements || count > elements - static_cast<uint64_t>(offset))
      throw Refuse("is corrupt: a tensor is larger than its storage");
    uint64_t stride = 1;
    for (size_t i = tensor.shape.size(); i-- > 0; stride *= tensor.shape[i]) {
      if (tensor.shape[i] > 1 && strides[i] != stride && count > 0)
        throw Refuse("holds a tensor that is not contiguous: save tensor.contiguous()");
    }
    tensor.offset_bytes = static_cast<uint64_t>(offset) * static_cast<uint64_t>(tensor.type.bytes);
    PushValue(std::move(value));
  }

  ByteParser parser_;
  const ZipArchive& archive_;
  const std::string prefix_;
  std::vector<Slot> stack_;
  const std::vector<bool> recalled_;
  std::map<size_t, Slot> memo_;  // of what is recalled
  size_t memoized_ = 0, parts_ = 0;
  std::vector<TorchValue*> integers_;  // by number, of those below kSharedIntegers
  TorchValue* truths_[2] = {};
  TorchTree tree_;
};

}  // namespace

const TorchValue* TorchValue::Find(const std::string& key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return items[i];
  }
  return nullptr;
}

TorchTree ReadTorchFile(const ZipArchive& archive) {
  const ZipEntry* pickle = nullptr;
  for (const ZipEntry& entry : archive.entries()) {
    if (entry.name.ends_with("/data.pkl")) pickle = &entry;
  }
  if (pickle == nullptr)
    throw BadInputAt(0, archive.name(), "is no file of torch.save: it holds no data.pkl");
  if (pickle->content_bytes > kMaxPickleBytes) {
    throw BadInputAt(pickle->offset, archive.name(),
                     "holds more than 256 MiB of structure, which some 3 million tensors have",
                     "save several files, or one tensor of all rows with attention_mask beside it");
  }
  const std::string prefix = pickle->name.substr(0, pickle->name.size() - std::string("data.pkl").size());
  if (const ZipEntry* order = archive.Find(prefix + "byteorder")) {
    if (AsText(archive.Stored(*order)) != "little")
      throw BadInputAt(order->offset, archive.name(), "is big-endian");
  }
  return Unpickler(archive.Stored(*pickle), archive, prefix).Run();
}

}  // namespace trainwright
