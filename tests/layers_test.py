#!/usr/bin/env python3
"""Checks every #include under lib/ and tools/ against lib/LAYERS.

usage: layers_test.py SOURCE_DIR

Refuses: an include of a layer that the table does not allow; a layer in the table that no include uses; torch headers
outside the layers marked "torch"; the whole-of-torch headers anywhere; torch in tools/*_options.*; the name of an objective
or optimizer in a file of lib/ that is not made for it: what differs between them is theirs to say; generation's caches of
keys and values in what trains, on whatever way; what changes the process, but in the files below; what a main sets its process up with, called by a library; code that runs before main.
"""
import pathlib
import re
import sys

TORCH = re.compile(r'^(ATen|torch|c10|caffe2)/')
TOO_WIDE = {"torch/torch.h", "torch/all.h", "torch/extension.h", "ATen/ATen.h"}

# What names one of an open set, and the files that may.
NAMES = {
    "an objective": (re.compile(r'\bk(Lm|Sft)Objective\b|--objective (lm|sft)\b|"(lm|sft)"'),
                     ("lib/objective/", "lib/documents/", "lib/formats/record_kind.h", "lib/spec/objective_names.h",
                      "lib/spec/built_in_objectives.cc")),
    "an optimizer": (re.compile(r'\bAdamW(Description|Kind)?\(|\bclass AdamW\b|--optimizer adamw|"adamw"|optim/adamw\.h'),
                     ("lib/optim/", "lib/spec/optimizer_options.h", "lib/spec/built_in_optimizers")),
}
# Training keeps no keys and values for later tokens: what it is made of cannot name what does.
CACHES = {"lib/model/context_cache.h", "lib/model/cached_decoder.h"}
TRAINS = ("objective", "optim", "memory", "train")

# What changes the process, or the state that libraries keep for the whole of it.
CHANGES_PROCESS = re.compile(
    r"\b((?:un)?setenv|putenv|clearenv|chdir|fchdir|umask|prctl|setlocale|tzset|locale::global|nice"
    r"|setrlimit|prlimit|setpriority|sched_setaffinity|pthread_setaffinity_np|mlockall"
    r"|mallopt|malloc_trim|set_new_handler|set_terminate|atexit|at_quick_exit"
    r"|signal|sigaction|sigaltstack|sigprocmask|pthread_sigmask"
    r"|fork|vfork|posix_spawnp?|exec[lv]p?e?|execvpe|exit|_exit|_Exit|quick_exit|abort|raise|kill"
    r"|dup2|dup3|freopen|setvbuf|sync_with_stdio|setsid|setpgid|close_range"
    r"|fesetround|fesetenv|_mm_setcsr|_MM_SET_\w+|set_flush_denormal|setFlushDenormal"
    r"|set_num_threads|set_num_interop_threads|omp_set_\w+|mkl_set_\w+|MKL_Set_\w+|dnnl_set_\w+"
    r"|SetCPUAllocator|SetAllocator|setMemoryFraction|setAllow\w+|setDeterministic\w*|setBenchmark\w*"
    r"|setSDPUse\w+|setFloat32\w+|set_default_dtype|manual_seed|cudaSetDevice\w*|cudaDeviceSet\w+)\s*\(")
# Where it stands, and for what. Those of the first group are called by mains alone (SETS_UP).
MAY_CHANGE_PROCESS = {
    "lib/device/determinism.cc": {"setenv", "set_num_threads"},
    "lib/device/gpu_choices.cc": {"setenv", "setAllowTF32CuBLAS", "setAllowBF16ReductionCuBLAS", "setAllowFP16ReductionCuBLAS",
                                  "setDeterministicAlgorithms",
                                  "setDeterministicFillUninitializedMemory"},
    "lib/device/memory_cap.cc": {"mallopt", "SetCPUAllocator", "setrlimit"},
    "lib/device/memory_death.cc": {"sigaltstack", "sigaction", "signal", "raise", "_exit"},
    "lib/nn/cuda/plugin.cc": {"setMemoryFraction"},  # CapDeviceMemory's
    "lib/base/signals.cc": {"sigaction", "signal", "_exit"},
    "lib/io/cut_mapping.cc": {"sigaction", "raise", "_exit"},
    "lib/cli/engine.cc": {"setenv", "fork", "dup2", "execv", "_exit"},
    # A child between fork and exec, and the end of it.
    "lib/io/command.cc": {"fork", "setpgid", "signal", "dup2", "execvpe", "_exit", "kill"},
    # What descends from such a child; a main asks to be told of orphans.
    "lib/io/descendants.cc": {"prctl", "kill"},
    # A child between fork and exec, and the signals that it passes on: the whole work of its main.
    "lib/launch/local_ranks.cc": {"fork", "setpgid", "prctl", "dup2", "pthread_sigmask", "execve", "_exit", "kill", "signal"},
    "lib/launch/rank_place.cc": {"unsetenv"},
    # A thread of its own, by the thread's id.
    "lib/checkpoint/checkpoint_copier.cc": {"setpriority"},
    "lib/checkpoint/checkpoint_writer.cc": {"setpriority"},
    # Gives back what is free; nothing is set.
    "lib/io/process_memory.cc": {"malloc_trim"},
    # Put back as soon as a product is measured: torch has no other way to ask for one in tf32.
    "lib/device/tf32_scope.cc": {"setAllowTF32CuBLAS"},
}
# The calls by which a main sets up its process, and the one of lib/ that makes them in its place.
SETS_UP = re.compile(
    r"\b(SetUpProcess|SetUpBackend|PrepareDeterminism|SetComputeThreads|CapHostMemory|CapDeviceMemory|KeepRoomForLibraries"
    r"|TellDeathsForMemory|TellCutMappings|InstallSignalHandlers|ConfigureLog|BecomeEngine|RunLocalRanks|TakeRankPlace"
    r"|OutliveClosedPipes|SetLogSpeaker|AdoptOrphans|QuietTorchLog|PrepareGpuChoices|ApplyGpuChoices|ApplyCpuGemms)\s*\(")
MAY_SET_UP = {
    "lib/device/process_setup.cc": {"SetComputeThreads", "CapHostMemory", "CapDeviceMemory", "KeepRoomForLibraries",
                                    "SetUpBackend", "PrepareGpuChoices", "ApplyGpuChoices"},
    "lib/cli/tool.cc": {"InstallSignalHandlers", "TellCutMappings", "ConfigureLog"},  # RunTool, which is a main's whole body
    "lib/cli/engine.cc": {"ConfigureLog"},
}
BEFORE_MAIN = re.compile(r"\b(constructor|init_priority)\b.*\)\)|\.(pre)?init_array|#\s*pragma\s+init")


def read_table(path):
    table = {}
    for line in path.read_text().splitlines():
        match = re.match(r'^([a-z]+)\s*(torch)?\s*:(.*)$', line)
        if match:
            table[match[1]] = (bool(match[2]), set(match[3].split()))
    return table


def code_lines(text):
    """The numbered lines of code, without comments and without what is in quotation marks."""
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), 1):
        yield number, re.sub(r'"(\\.|[^"\\])*"', '""', line).split("//")[0]


def is_declaration(line, name):
    """Whether the line begins a function of that name, as a header or its definition has it."""
    return re.match(rf"(\[\[\w+\]\]\s*)?[A-Za-z_][\w:<>&* ]*[\w>&*]\s+\**{name}\s*\(", line) is not None and \
        not line.startswith(("return ", "throw "))


def problems_of_process(relative, text):
    """What a file of lib/ does to the process beyond what it may."""
    for number, line in code_lines(text):
        for match in CHANGES_PROCESS.finditer(line):
            if match[1] not in MAY_CHANGE_PROCESS.get(relative, ()):
                yield f"{relative}:{number}: {match[1]} changes the process: let a main ask for it (lib/device/process_setup.h)"
        for match in SETS_UP.finditer(line):
            if match[1] not in MAY_SET_UP.get(relative, ()) and not is_declaration(line, match[1]):
                yield f"{relative}:{number}: {match[1]} is for mains: take what it gives as a value"
    if BEFORE_MAIN.search(text):
        yield f"{relative}: runs before main: that is for a program to say (tools/before_libraries.cc)"


def problems_of_caches(source_dir):
    """Files that train and reach a cache, with the way."""
    includes = {}

    def included(name):
        if name not in includes:
            path = source_dir / name
            includes[name] = re.findall(r'#\s*include\s*"(lib/[^"]+)"', path.read_text()) if path.exists() else []
        return includes[name]

    for cache in CACHES:
        if not (source_dir / cache).exists():
            yield f"{cache}: is gone; CACHES names it"
    for path in (path for layer in TRAINS for path in sorted((source_dir / "lib" / layer).rglob("*")) if path.suffix in (".h", ".cc")):
        start = path.relative_to(source_dir).as_posix()
        ways, left = {start: start}, [start]
        while left:
            name = left.pop()
            for other in included(name):
                if other not in ways:
                    ways[other] = f"{ways[name]} -> {other}"
                    left.append(other)
        for cache in sorted(CACHES & ways.keys()):
            yield f"{ways[cache]}: training keeps no keys and values"


def problems_of(source_dir):
    table = read_table(source_dir / "lib/LAYERS")
    files = [p for top in ("lib", "tools") for p in sorted((source_dir / top).rglob("*")) if p.suffix in (".h", ".cc", ".cu", ".cuh")]
    checked = 0
    used = {layer: set() for layer in table}
    for path in files:
        relative = path.relative_to(source_dir)
        layer = relative.parts[1] if relative.parts[0] == "lib" else None
        if layer is not None and layer not in table:
            yield f"{relative}: layer '{layer}' is not in lib/LAYERS"
            continue
        text = path.read_text()
        if layer is not None:
            yield from problems_of_process(str(relative), text)
        for number, line in enumerate(text.splitlines(), 1):
            for what, (name, allowed) in NAMES.items():
                if layer is not None and name.search(line) and not str(relative).startswith(allowed):
                    yield f"{relative}:{number}: names {what}; the registry's entries say what differs between them"
            match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if not match:
                continue
            checked += 1
            header, where = match[1], f"{relative}:{number}"
            if header in TOO_WIDE:
                yield f"{where}: {header} takes over 10 s a file; include the narrow header"
            if TORCH.match(header):
                if layer is None and "_options" in path.name:
                    yield f"{where}: options files must stay free of torch"
                elif layer is not None and not table[layer][0]:
                    yield f"{where}: layer {layer} must not include torch"
            if header.startswith("lib/") and layer is not None and header != "lib/base/version.h":
                other = header.split("/")[1]
                used[layer].add(other)
                if other != layer and other not in table[layer][1]:
                    yield f"{where}: layer {layer} must not include layer {other}"
    for layer, (_, allowed) in table.items():
        for other in sorted(allowed - used[layer]):
            yield f"lib/LAYERS: layer {layer} may include layer {other}, and nothing does"
    yield from problems_of_caches(source_dir)
    if checked == 0:
        yield "no #include was checked: wrong folder?"


def main():
    problems = list(problems_of(pathlib.Path(sys.argv[1])))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
