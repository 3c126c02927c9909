// The tool `ckpt-compress` as a process: full disks, failing writes, kills at any moment, files that change,
// memory.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/support/support.h"

namespace trainwright::test {
namespace {

#ifdef TRAINWRIGHT_SYSCALL_FAULTS
constexpr char kPreload[] = TRAINWRIGHT_SYSCALL_FAULTS;
#else
constexpr char kPreload[] = "";
#endif

/// `tensors` bf16 tensors of `elements` numbers that look like weights.
std::string Checkpoint(int tensors, size_t elements, uint32_t seed) {
  nlohmann::ordered_json header;
  for (int i = 0; i < tensors; ++i) {
    const size_t begin = 2 * elements * static_cast<size_t>(i);
    header["tensor" + std::to_string(i)] = {
        {"dtype", "BF16"}, {"shape", {elements}}, {"data_offsets", {begin, begin + 2 * elements}}};
  }
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  file += text;
  std::mt19937 random(seed);
  for (size_t i = 0; i < static_cast<size_t>(tensors) * elements; ++i) {
    const uint32_t bits = random();
    file += static_cast<char>(bits);
    file += static_cast<char>(0x3c | (bits >> 8 & 0x83));
  }
  return file;
}

class CkptCompressToolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteFile(folder_.path("m.safetensors"), Checkpoint(3, 300'000, 1));
    WriteFile(folder_.path("other.safetensors"), Checkpoint(3, 300'000, 2));
  }
  ProcessResult Shell(const std::string& script) {
    return RunShell("set -u; export PRELOAD='" + std::string(kPreload) + "'; cd '" + folder_.path() + "'\n" +
                    script);
  }

  TemporaryFolder folder_;
};

/// Where processes can be made to fail at a chosen call.
class CkptCompressFaultTest : public CkptCompressToolTest {
 protected:
  void SetUp() override {
    if (*kPreload == '\0') GTEST_SKIP() << "no library of failing calls in this build";
    CkptCompressToolTest::SetUp();
  }
};

TEST_F(CkptCompressFaultTest, AFailedCallIsStatus4AndLeavesTheOldFileAlone) {
  const ProcessResult result = Shell(R"sh(
    ckpt-compress -q other.safetensors -o out && cp out old && ckpt-compress -q m.safetensors -o small
    for fault in 'open /.out 1 ENOSPC' 'write /.out 1 ENOSPC' 'write /.out 2 EIO' 'write /.out 4 ENOSPC...' \
                 'fsync /.out 1 EIO' 'rename out 1 EIO'; do
      for command in 'm.safetensors' '-d small'; do
        LD_PRELOAD=$PRELOAD SYSCALL_FAULT=$fault ckpt-compress -f $command -o out 2> log
        status=$?
        [ $status = 4 ] || echo "$command, $fault: status $status"
        cmp out old
        grep -q 'ckpt-compress: error: out: ' log || cat log
      done
    done
    ls -A | tr '\n' ' ')sh");
  EXPECT_EQ(result.standard_output, "log m.safetensors old other.safetensors out small ")
      << result.standard_error;
}

TEST_F(CkptCompressFaultTest, AKillAtAnyCallLeavesTheOldFileOrTheNewOne) {
  const ProcessResult result = Shell(R"sh(
    ckpt-compress -q other.safetensors -o old && ckpt-compress -q m.safetensors -o new
    for fault in 'any out 1' 'any out 2' 'any out 3' 'any out 5' 'any out 8' 'fsync out 1' 'rename out 1'; do
      cp old out
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT="$fault KILL" ckpt-compress -q -f m.safetensors -o out
      [ $? = 137 ] || echo "$fault: not killed"
      cmp -s out old || echo "$fault: torn"
    done 2> log
    # What the killed left is removed by the next run.
    [ "$(ls -A | grep -c tmp-)" -ge 1 ] || echo "nothing was left"
    ckpt-compress -q -f m.safetensors -o out
    cmp out new
    ls -A | grep tmp-
    true)sh");
  EXPECT_EQ(result.standard_output, "") << result.standard_error;
}

TEST_F(CkptCompressFaultTest, AKillOrAFullDiskLeavesTheOldFolder) {
  const ProcessResult result = Shell(R"sh(
    mkdir a b; cp other.safetensors a/x.safetensors; cp m.safetensors b/x.safetensors
    ckpt-compress -q a -o out && cp -r out old && ckpt-compress -q b -o new
    for fault in 'any out 1 KILL' 'any out 3 KILL' 'any out 5 KILL' 'write out 2 ENOSPC' 'rename out 1 EIO...'; do
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT=$fault ckpt-compress -q -f b -o out
      case "$? $fault" in 137*KILL | 4*ENOSPC | 4*EIO*) ;; *) echo "$fault: status $?" ;; esac
      diff -r out old
    done 2> log
    ckpt-compress -q -f b -o out && diff -r out new
    ls -A | grep tmp-
    true)sh");
  EXPECT_EQ(result.standard_output, "") << result.standard_error;
}

// As on network file systems.
TEST_F(CkptCompressFaultTest, AFolderIsReplacedWhereRenamesKnowNoFlags) {
  const ProcessResult result = Shell(R"sh(
    mkdir a b; cp other.safetensors a/x.safetensors; cp m.safetensors b/x.safetensors
    ckpt-compress -q a -o out && ckpt-compress -q b -o new
    export SYSCALL_NO_RENAME_FLAGS=1
    LD_PRELOAD=$PRELOAD ckpt-compress -q b -o out 2> log; echo $?
    LD_PRELOAD=$PRELOAD ckpt-compress -q -f b -o out; echo $?
    diff -r out new
    LD_PRELOAD=$PRELOAD ckpt-compress -q b -o third; echo $?
    diff -r third new
    ls -A | grep tmp-
    true)sh");
  EXPECT_EQ(result.standard_output, "2\n0\n0\n") << result.standard_error;
}

// The renames are those of the file, of the old folder and of the new one.
TEST_F(CkptCompressFaultTest, AKillOrAFailureBetweenTwoRenamesLosesNoFolder) {
  const ProcessResult result = Shell(R"sh(
    mkdir a b; cp other.safetensors a/x.safetensors; cp m.safetensors b/x.safetensors
    ckpt-compress -q a -o out && cp -r out old && ckpt-compress -q b -o new
    export SYSCALL_NO_RENAME_FLAGS=1
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='rename out 3 EIO' ckpt-compress -q -f b -o out 2> log; echo $?
    diff -r out old
    ls -A | grep tmp-
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='rename out 3 KILL' ckpt-compress -q -f b -o out 2> log; echo $?
    [ ! -e out ] || echo 'not between the two'
    ckpt-compress -q b -o out 2> log; echo $?
    diff -r out old
    ls -A | grep tmp-
    ckpt-compress -q -f b -o out && diff -r out new)sh");
  EXPECT_EQ(result.standard_output, "4\n137\n2\n") << result.standard_error;
}

TEST_F(CkptCompressFaultTest, AReplacedFolderThatIsBeingDeletedDoesNotComeBack) {
  const ProcessResult result = Shell(R"sh(
    mkdir a b; cp other.safetensors a/x.safetensors; cp m.safetensors b/x.safetensors
    ckpt-compress -q a -o out && ckpt-compress -q b -o new
    LD_PRELOAD=$PRELOAD SYSCALL_NO_RENAME_FLAGS=1 SYSCALL_FAULT='unlinkat /.out.tmp- 1 KILL' \
      ckpt-compress -q -f b -o out 2> log; echo $?
    diff -r out new
    rm -r out
    ckpt-compress -q b -o out; echo $?
    diff -r out new
    ls -A | grep tmp-
    true)sh");
  EXPECT_EQ(result.standard_output, "137\n0\n") << result.standard_error;
}

TEST_F(CkptCompressFaultTest, AReplacedFolderThatCannotBeDeletedIsNamed) {
  const ProcessResult result = Shell(R"sh(
    mkdir ckpt; cp m.safetensors ckpt; ckpt-compress -q --fast ckpt
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='unlinkat .ckpt.twc.tmp- 1 EIO...' ckpt-compress -f ckpt 2> log; echo $?
    left=$(ls -A | grep '^[.]ckpt.twc.tmp-')
    grep -c "warning: ./$left: delete failed: Input/output error; it is what is left of the folder" log
    ckpt-compress -l ckpt.twc | grep -c 'level default')sh");
  EXPECT_EQ(result.standard_output, "0\n1\n1\n") << result.standard_error;
}

TEST_F(CkptCompressFaultTest, AFileThatIsWrittenToMeanwhileIsNoticed) {
  const ProcessResult result = Shell(R"sh(
    for change in 'printf x >> m.safetensors' 'touch m.safetensors' 'mv new m.safetensors' \
                  'truncate -s 1000000 m.safetensors'; do
      cp other.safetensors m.safetensors
      cp other.safetensors new
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write /.out 2 STOP' ckpt-compress m.safetensors -o out 2> log & pid=$!
      for _ in $(seq 1000); do grep -q '^State:.T' /proc/$pid/status && break; sleep 0.01; done
      eval "$change"; kill -CONT $pid; wait $pid
      case "$? $(cat log)" in
        3*'changed while it was read'* | 3*'bytes follow'* | 3*'ends too early'*) ;;
        *) echo "$change"; cat log ;;
      esac
      [ ! -e out ] || echo "$change: there is an output"
    done)sh");
  EXPECT_EQ(result.standard_output, "") << result.standard_error;
}

// Of both the tensors are too large to be held.
TEST_F(CkptCompressFaultTest, ABaseThatIsWrittenToMeanwhileIsNoticed) {
  WriteFile(folder_.path("base"), Checkpoint(2, 3'000'000, 5));
  WriteFile(folder_.path("large.safetensors"), Checkpoint(2, 3'000'000, 5));
  const ProcessResult result = Shell(R"sh(
    ckpt-compress -q --base base large.safetensors -o small
    for input in large.safetensors '-d small' '-d --keep-going small'; do
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write /.out 1 STOP' ckpt-compress --base base $input -o out 2> log & pid=$!
      for _ in $(seq 1000); do grep -q '^State:.T' /proc/$pid/status && break; sleep 0.01; done
      printf x | dd of=base bs=1 seek=11000000 conv=notrunc 2> /dev/null
      kill -CONT $pid; wait $pid
      case "$? $(cat log)" in 3*'base: changed while it was read'*) ;; *) echo "$input"; cat log ;; esac
      [ ! -e out ] || echo "$input: there is an output"
      cp large.safetensors base
    done)sh");
  EXPECT_EQ(result.standard_output, "") << result.standard_error;
}

// Nothing could decode the difference from a file that is nowhere any more.
TEST_F(CkptCompressFaultTest, ABaseThatIsReplacedOrRemovedMeanwhileIsNoticed) {
  const ProcessResult result = Shell(R"sh(
    for change in 'mv new base' 'rm base'; do
      cp other.safetensors base
      cp m.safetensors new
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write /.out 1 STOP' ckpt-compress --base base m.safetensors -o out 2> log & pid=$!
      for _ in $(seq 1000); do grep -q '^State:.T' /proc/$pid/status && break; sleep 0.01; done
      eval "$change"; kill -CONT $pid; wait $pid
      case "$? $(cat log)" in
        3*'base: changed while it was read'* | 4*'base: open failed'*) ;;
        *) echo "$change"; cat log ;;
      esac
      [ ! -e out ] || echo "$change: there is an output"
    done)sh");
  EXPECT_EQ(result.standard_output, "") << result.standard_error;
}

TEST_F(CkptCompressFaultTest, AFullFolderForTemporaryFilesIsStatus4AndLeavesNothing) {
  WriteFile(folder_.path("large.safetensors"), Checkpoint(1, 3'000'000, 5));
  const ProcessResult result = Shell(R"sh(
    export TMPDIR=$PWD/spool; mkdir spool
    for command in '-o out -' '--to safetensors -o - -' '-d --tensor tensor0 --to raw -o - -'; do
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write spool 2 ENOSPC' ckpt-compress $command < large.safetensors 2> log > result
      [ $? = 4 ] || echo "$command: status $?"
      grep -q '/spool: write of the temporary file failed: No space left on device' log || cat log
      grep -q 'hint: TMPDIR names another folder' log || cat log
      [ ! -s result ] || echo "$command: there is an output"
    done
    ls -A spool | tr '\n' ' '; ls -A | tr '\n' ' ')sh");
  EXPECT_EQ(result.standard_output, "large.safetensors log m.safetensors other.safetensors result spool ")
      << result.standard_error;
}

TEST_F(CkptCompressFaultTest, NothingIsSalvagedFromAFileThatIsWrittenTo) {
  const ProcessResult result = Shell(R"sh(
    ckpt-compress -q other.safetensors -o sound && cp sound damaged
    printf '\377\376\375\374' | dd of=damaged bs=1 seek=500000 conv=notrunc 2> log
    for file in sound damaged; do
      cp $file small
      ckpt-compress -q -d --keep-going small -o whole 2> log; echo $?; rm whole
      for change in 'printf x >> small' 'touch small' 'cat damaged > small' 'mv new small'; do
        cp $file small; cp $file new
        LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write /.out 1 STOP' ckpt-compress -q -d --keep-going small -o out 2> log & pid=$!
        for _ in $(seq 1000); do grep -q '^State:.T' /proc/$pid/status && break; sleep 0.01; done
        eval "$change"; kill -CONT $pid; wait $pid
        case "$? $(cat log)" in 3*'changed while it was read'*) ;; *) echo "$file, $change"; cat log ;; esac
        [ ! -e out ] || echo "$file, $change: there is an output"
      done
    done)sh");
  EXPECT_EQ(result.standard_output, "0\n3\n") << result.standard_error;
}

TEST_F(CkptCompressFaultTest, AFolderIsWhatItWasWhenItsFilesWereLookedFor) {
  const ProcessResult result = Shell(R"sh(
    mkdir plain; for name in a b; do cp m.safetensors plain/$name.safetensors; done
    ckpt-compress -q plain -o small
    across() {
      local change=$1; shift
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write /.out 1 STOP' ckpt-compress -q "$@" -o out 2> log & pid=$!
      for _ in $(seq 1000); do grep -q '^State:.T' /proc/$pid/status && break; sleep 0.01; done
      eval "$change"; kill -CONT $pid; wait $pid; echo "$?: $(ls out 2> /dev/null | tr '\n' ' ')"
    }
    for command in plain '-d small'; do
      folder=${command#-d }
      rm -rf input out; cp -r $folder input
      across 'cp m.safetensors input/c.safetensors' ${command%$folder} input
      rm -rf input out; cp -r $folder input
      across 'rm input/b*' ${command%$folder} input
      grep -o 'b[.a-z]*: was removed while its folder was read' log
    done)sh");
  EXPECT_EQ(
      result.standard_output,
      "0: a.twc.safetensors b.twc.safetensors \n3: \nb.safetensors: was removed while its folder was read\n"
      "0: a.safetensors b.safetensors \n3: \n"
      "b.twc.safetensors: was removed while its folder was read\n")
      << result.standard_error;
}

TEST_F(CkptCompressFaultTest, UnfinishedOutputIsAsPrivateAsTheInput) {
  const ProcessResult result = Shell(R"sh(
    umask 022; chmod 600 m.safetensors; mkdir ckpt; cp m.safetensors ckpt; chmod 755 ckpt; chmod 644 ckpt/*
    for input in m.safetensors ckpt; do
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write .m.twc 2 STOP' ckpt-compress -q $input & pid=$!
      for _ in $(seq 1000); do grep -q '^State:.T' /proc/$pid/status && break; sleep 0.01; done
      stat -c '%a %F' $(ls -d .[a-z]*tmp-* | grep -v '[.]lock$')
      kill -CONT $pid; wait $pid
    done)sh");
  EXPECT_EQ(result.standard_output, "600 regular file\n700 directory\n") << result.standard_error;
}

TEST_F(CkptCompressFaultTest, OfTwoWritersWithoutForceOneWins) {
  const ProcessResult result = Shell(R"sh(
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='rename out 1 STOP' ckpt-compress -q m.safetensors -o out 2> log & pid=$!
    for _ in $(seq 1000); do grep -q '^State:.T' /proc/$pid/status && break; sleep 0.01; done
    ckpt-compress -q other.safetensors -o out && cp out first
    kill -CONT $pid; wait $pid; echo $?
    grep -c 'out: exists already' log
    cmp out first
    ls -A | grep tmp-)sh");
  EXPECT_EQ(result.standard_output, "2\n1\n") << result.standard_error;
}

TEST_F(CkptCompressToolTest, SignalsStopItCleanly) {
  const ProcessResult result = Shell(R"sh(
    for signal in INT TERM; do
      mkfifo pipe; ckpt-compress - -o out < pipe 2> log & pid=$!
      exec 3> pipe; head -c 500000 m.safetensors >&3; sleep 0.2
      kill -s $signal $pid; wait $pid; echo "$? $(grep -c "stopped by SIG$signal" log)"; exec 3>&-; rm pipe
    done
    ls -A | tr '\n' ' ')sh");
  EXPECT_EQ(result.standard_output, "130 1\n143 1\nlog m.safetensors other.safetensors ")
      << result.standard_error;
}

// A limit of its own stands in for a full disk.
TEST_F(CkptCompressToolTest, AFileSizeLimitIsStatus4) {
  const ProcessResult result = Shell(R"sh(
    ( ulimit -f 100; ckpt-compress m.safetensors -o out ) 2> log; echo "$? $(grep -c 'error: out: ' log)"
    ls -A | tr '\n' ' ')sh");
  EXPECT_EQ(result.standard_output, "4 1\nlog m.safetensors other.safetensors ") << result.standard_error;
}

// Sanitizers keep freed memory aside.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(CkptCompressToolTest, MemoryIsThatOfThreeTensorsNotOfTheFile) {
  WriteFile(folder_.path("many.safetensors"), Checkpoint(60, 300'000, 3));
  const ProcessResult result = Shell(R"sh(
    for tensors in m many; do
      ckpt-compress -q --threads 2 --summary c.json $tensors.safetensors -o $tensors.small
      ckpt-compress -q --threads 2 --summary d.json -d $tensors.small -o restored
      cmp restored $tensors.safetensors; rm restored
      python3 -c 'import json
for name in "cd": print(json.load(open(name + ".json"))["max_memory_bytes"])'
    done)sh");
  std::istringstream lines(result.standard_output);
  uint64_t few_compress = 0, few_restore = 0, many_compress = 0, many_restore = 0;
  lines >> few_compress >> few_restore >> many_compress >> many_restore;
  ASSERT_GT(many_restore, 0u) << result.standard_output << result.standard_error;
  // 36 MB of tensors of 0.6 MB each, and not 1.8 MB; blocks under way are the same in both.
  EXPECT_LT(many_compress, few_compress + 12'000'000);
  EXPECT_LT(many_restore, few_restore + 12'000'000);
}
#endif

}  // namespace
}  // namespace trainwright::test
