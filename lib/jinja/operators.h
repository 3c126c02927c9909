/// Operators, attributes and items, as Python and Jinja's sandbox give them.
///
/// All throw Problem for wrong operands.
#pragma once

#include <string_view>
#include <vector>

#include "lib/jinja/machine.h"
#include "lib/jinja/syntax_tree.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

/// The function of + - * / // % or **.
BinaryFunction BinaryOf(std::string_view sign);
Value Negated(const Value& value);
/// a == b, and one of < <= > >=, as in value.h, with the work that it takes counted.
bool Equal(Machine& machine, const Value& a, const Value& b);
bool Ordered(Machine& machine, const Value& a, const Value& b, std::string_view sign);
/// `a in b`
bool Contains(Machine& machine, const Value& a, const Value& b);
/// `a.name`: the attribute first, then the item.
Value GetAttribute(Machine& machine, const Value& object, const Value& name);
/// `a[key]`: the item first, then the attribute.
Value GetItem(Machine& machine, const Value& object, const Value& key);
/// `a[begin:end:step]`; each None where it is not given.
Value GetSlice(Machine& machine, const Value& object, const Value& begin, const Value& end,
               const Value& step);
/// What a loop over it gives; iterators are used up.
std::vector<Value> ItemsOf(Machine& machine, const Value& value);
bool IsIterable(const Value& value);
/// len(value)
int64_t LengthOf(const Value& value);

}  // namespace trainwright::jinja
