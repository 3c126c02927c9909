"""What a GPU draws and how fast it is clocked while a step runs, by nvidia-smi."""
import statistics
import subprocess

FIELDS = {"power.draw": "power_w", "clocks.sm": "sm_clock_mhz", "clocks.mem": "memory_clock_mhz",
          "temperature.gpu": "temperature_c"}


class PowerSampler:
    """Samples every half second from `with` to its end; `figures` are then medians, and the highest power."""

    def __init__(self):
        self.figures = {}

    def __enter__(self):
        try:
            self.process = subprocess.Popen(
                ["nvidia-smi", "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader,nounits", "-i", "0", "-lms", "500"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except FileNotFoundError:
            self.process = None
        return self

    def __exit__(self, *_):
        if self.process is None:
            return
        self.process.terminate()
        rows = [line.split(",") for line in self.process.communicate()[0].splitlines()]
        for column, name in enumerate(FIELDS.values()):
            values = [float(row[column]) for row in rows if len(row) == len(FIELDS) and row[column].strip()[:1].isdigit()]
            if values:
                self.figures[name] = statistics.median(values)
                if name == "power_w":
                    self.figures["largest_power_w"] = max(values)
