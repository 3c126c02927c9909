"""What a comparison asks of the machine: its kind, what others take of it, processors to be pinned to, a spin loop."""
import contextlib
import dataclasses
import os
import pathlib
import platform
import time

UNITS = ("amx_bf16", "amx_int8", "avx512_bf16", "avx512f", "avx2")
SPIN_S = 0.4


@dataclasses.dataclass(frozen=True)
class Spin:
    """What threads that only count reach: as a multiple of one of them, and the least that a processor gave to one."""
    gain: float
    least_cpu_share: float


def seconds_of(line):
    """(busy, stolen) seconds of a line of /proc/stat. A guest's time is in the user's already."""
    user, nice, system, _, _, irq, softirq, steal = map(int, line.split()[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


def processor_times():
    """{processor: (busy seconds, stolen seconds)} since the start of the machine."""
    lines = pathlib.Path("/proc/stat").read_text().splitlines()
    return {int(line.split()[0][3:]): seconds_of(line) for line in lines if line.startswith("cpu") and line[3].isdigit()}


def first_of(path):
    """A file of one line, or None where the machine has none."""
    with contextlib.suppress(OSError):
        return pathlib.Path(path).read_text().strip()
    return None


def cpuinfo():
    """The fields of the first processor in /proc/cpuinfo."""
    block = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in block.splitlines())}


def kind_of(vendor, units):
    """The name by which results of one kind of processor are kept: maker and widest unit, as intel-amx or amd-avx512."""
    maker = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(vendor, (vendor or platform.machine()).lower())
    widest = next((name for name, flag in (("amx", "amx_bf16"), ("avx512", "avx512f"), ("avx2", "avx2")) if flag in units), "base")
    return f"{maker}-{widest}"


def siblings_of(cpu):
    """The hardware threads of a processor's core, itself included."""
    text = first_of(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu)
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def count_until(cpu, end):
    """(loops, CPU seconds, wall seconds) of counting on one processor until a time of the monotonic clock, once at least."""
    os.sched_setaffinity(0, {cpu})
    loops, wall, used = 0, time.monotonic(), time.process_time()
    while loops == 0 or time.monotonic() < end:
        for _ in range(20_000):
            pass
        loops += 1
    return loops, time.process_time() - used, time.monotonic() - wall


def count_on(cpus, seconds):
    """What count_until reports of a process on each of the processors, all at the same time."""
    readers = []
    end = time.monotonic() + 0.02 + seconds
    for cpu in cpus:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writer, repr(count_until(cpu, end)).encode())
            os._exit(0)
        os.close(writer)
        readers.append((pid, reader))
    found = []
    for pid, reader in readers:
        with os.fdopen(reader, "rb") as file:
            loops, used, wall = file.read().decode().strip("()").split(", ")
        os.waitpid(pid, 0)
        found.append((int(loops), float(used), float(wall)))
    return found


class Machine:
    """This one. Tests put a machine with a clock of their own in its place."""

    def record(self):
        """What does not change while a comparison runs, and the load before it."""
        info = cpuinfo()
        units = [unit for unit in UNITS if unit in info.get("flags", "").split()]
        return {"kind": kind_of(info.get("vendor_id"), units), "model": info.get("model name", "unknown processor"),
                "family_model_stepping": [info.get(name) for name in ("cpu family", "model", "stepping")], "units": units,
                "microcode": info.get("microcode"), "processors": os.cpu_count(),
                "threads_a_core": len(siblings_of(0)), "virtual": "hypervisor" in info.get("flags", "").split(),
                "governor": first_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), "kernel": platform.release(),
                "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "load": self.load()}

    def now(self):
        return time.monotonic()

    def load(self):
        return os.getloadavg()[0]

    def mhz(self, cpus):
        """Clocks of processors, as the kernel reports them at this moment."""
        blocks = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")
        found = {}
        for block in blocks:
            fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in block.splitlines())}
            if "cpu MHz" in fields:
                found[int(fields["processor"])] = float(fields["cpu MHz"])
        return [found[cpu] for cpu in cpus if cpu in found]

    def allowed(self):
        """Processors that this process may use."""
        return os.sched_getaffinity(0)

    def stolen_s(self, cpus):
        """Seconds that the host has taken from these processors."""
        times = processor_times()
        return sum(times[cpu][1] for cpu in cpus)

    def choose(self, count, seconds=0.5):
        """The processors with the least to do, each of another core where there are as many."""
        before = processor_times()
        time.sleep(seconds)
        after = processor_times()
        allowed = sorted(os.sched_getaffinity(0), key=lambda cpu: (sum(after[cpu]) - sum(before[cpu]), cpu))
        if len(allowed) < count:
            raise ValueError(f"{count} processors are needed, and {len(allowed)} may be used")
        chosen = []
        for cpu in allowed:
            if len(chosen) < count and not any(siblings_of(cpu) & siblings_of(other) for other in chosen):
                chosen.append(cpu)
        return sorted(chosen + [cpu for cpu in allowed if cpu not in chosen][:count - len(chosen)])

    @contextlib.contextmanager
    def pinned(self, cpus):
        """Whatever starts within runs on these processors alone, in this process and in others."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cpus)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def spin(self, cpus):
        alone, = count_on(cpus[:1], SPIN_S)
        together = count_on(cpus, SPIN_S)
        rates = [loops / wall for loops, _, wall in together]
        return Spin(sum(rates) / (alone[0] / alone[2]), min(used / wall for _, used, wall in (alone, *together)))
