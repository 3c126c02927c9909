"""The runs of a comparison: kept in OUT.json, each as soon as it has ended, with the report of all of them beside it."""
import json
import pathlib


class RunResults:
    """The runs of OUT.json."""

    def __init__(self, out, write_report):
        """write_report takes the runs whenever there is one more."""
        self.json, self.write_report = pathlib.Path(f"{out}.json"), write_report
        self.runs = json.loads(self.json.read_text()) if self.json.exists() else []

    def has(self, settings, contestant, number):
        return any(run["settings"] == settings and (run["contestant"], run["round"]) == (contestant, number)
                   for run in self.runs)

    def add(self, measured):
        self.runs.append(measured)
        partial = self.json.with_suffix(".partial")
        partial.write_text("[" + ",\n".join(json.dumps(run) for run in self.runs) + "]\n")
        partial.replace(self.json)
        self.write_report(self.runs)
