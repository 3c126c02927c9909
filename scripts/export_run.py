#!/usr/bin/env python3
"""Writes runs of train into MLflow, or as offline runs of Weights & Biases, with these programs' own libraries.

  scripts/export_run.py mlflow RUN... [--to URI] [--experiment NAME]
  scripts/export_run.py wandb RUN... [--to DIR] [--project NAME]

  RUN           a run directory of train: the folder of metrics.jsonl
  --to          of mlflow the tracking URI (default: sqlite:///mlflow.db), of wandb the folder of its offline runs (default: .);
                `wandb sync DIR/wandb/offline-run-*` uploads them
  --experiment  of mlflow, --project of wandb: where the runs go (default: trainwright)

Every number of the step records becomes a metric of its name at its step; those of evaluations have eval_ before it, and
those of lists their place behind it: source_tokens.0 is of the first of the data_sources. The plan and the configuration of
the model become parameters, with dots for what is nested. A run that failed is marked so. One without an end is left running
in MLflow, and failed in Weights & Biases, whose offline runs end as they are written. Its times of day are those of the run,
but the duration of a run and the axes of relative time, which its library sets by itself, those of the export. A run that is
exported twice is there twice. Nothing is read but metrics.jsonl, and nothing is sent anywhere but to --to. Takes
`pip install mlflow`, or `pip install wandb`.
"""
import argparse
import json
import numbers
import pathlib
import sys

MOST_METRICS, MOST_PARAMETERS, MOST_CHARACTERS = 1000, 100, 6000  # of MLflow: in a request, and in a value
NOT_METRICS = {"step", "time_unix_s"}


class BadRun(Exception):
    pass


def flat(value, name="", divides_lists=False):
    """(name, value) of what is nested in objects, and perhaps in lists, names and places joined by dots."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if divides_lists and isinstance(value, list) else None
    if items is not None:
        for key, item in items:
            yield from flat(item, f"{name}.{key}" if name else key, divides_lists)
    else:
        yield name, value


def is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


class Run:
    """What metrics.jsonl says of a run: parameters, (time_unix_s, step, {metric: value}) in order, and how it ended."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.name = self.folder.name
        self.parameters, self.rows, self.exit_status = {}, [], None
        self.begin_s = self.end_s = None
        path = self.folder / "metrics.jsonl"
        try:
            lines = path.read_bytes().removesuffix(b"\n").split(b"\n")  # texts may hold what Unicode takes for an end of line
        except OSError as error:
            raise BadRun(f"{path}: {error.strerror}")
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line.decode())
                self.take(record, record["type"])
            except (ValueError, KeyError, TypeError):
                if number == len(lines):
                    break  # a process that was killed may have left a part of a line
                raise BadRun(f"{path}: line {number} is no record of train")
        if self.begin_s is None:
            raise BadRun(f"{path}: no run begins there")

    def take(self, record, kind):
        time_s = record["time_unix_s"]
        if kind == "run_begin":
            if self.begin_s is None:
                self.begin_s = time_s
            self.exit_status = None
            self.parameters = {name: value for part in ("plan", "model") for name, value in flat(record[part], part)}
            self.parameters["version"] = record["version"]
        elif kind in ("step", "eval"):
            prefix = "eval_" if kind == "eval" else ""
            self.rows.append((time_s, record["step"], {prefix + name: value
                                                       for name, value in flat(record, divides_lists=True)
                                                       if is_number(value) and name not in NOT_METRICS}))
        elif kind == "run_end":
            self.exit_status = record["exit_status"]
        self.end_s = time_s


def to_mlflow(run, uri, experiment):
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.tracking import MlflowClient
    client = MlflowClient(tracking_uri=uri)
    found = client.get_experiment_by_name(experiment)
    experiment_id = found.experiment_id if found else client.create_experiment(experiment)
    made = client.create_run(experiment_id, start_time=int(1000 * run.begin_s), run_name=run.name).info.run_id
    parameters = [Param(name, json.dumps(value) if isinstance(value, (list, bool)) else str(value)[:MOST_CHARACTERS])
                  for name, value in run.parameters.items()]
    metrics = [Metric(name, float(value), int(1000 * time_s), step) for time_s, step, values in run.rows
               for name, value in values.items()]
    for i in range(0, len(parameters), MOST_PARAMETERS):
        client.log_batch(made, params=parameters[i:i + MOST_PARAMETERS])
    for i in range(0, len(metrics), MOST_METRICS):
        client.log_batch(made, metrics=metrics[i:i + MOST_METRICS])
    client.log_batch(made, tags=[RunTag("trainwright.run", str(run.folder))])
    if run.exit_status is not None:
        client.set_terminated(made, "FINISHED" if run.exit_status == 0 else "FAILED", int(1000 * run.end_s))
    return f"run {made} of experiment {experiment} in {uri}"


def to_wandb(run, folder, project):
    import wandb
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    made = wandb.init(mode="offline", dir=folder, project=project, name=run.name, config=run.parameters,
                      settings=wandb.Settings(silent=True, console="off", x_disable_stats=True, save_code=False))
    by_step = {}  # a step of W&B is written once: training and evaluation together
    for time_s, step, values in run.rows:
        by_step.setdefault(step, {"_timestamp": time_s}).update(values)
    for step, values in sorted(by_step.items()):
        made.log(values, step=step)
    made.finish(exit_code=1 if run.exit_status is None else run.exit_status)
    return f"an offline run of project {project} in {pathlib.Path(folder) / 'wandb'}"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=("mlflow", "wandb"))
    parser.add_argument("run", nargs="+", help="run directories of train")
    parser.add_argument("--to")
    parser.add_argument("--experiment", "--project", default="trainwright")
    options = parser.parse_args(arguments)
    try:
        runs = [Run(folder) for folder in options.run]  # all are read before one is written
    except BadRun as error:
        print(f"export_run.py: error: {error}", file=sys.stderr)
        return 3
    write, default = {"mlflow": (to_mlflow, "sqlite:///mlflow.db"), "wandb": (to_wandb, ".")}[options.program]
    for run in runs:
        try:
            print(f"{run.folder}: {write(run, options.to or default, options.experiment)}")
        except ImportError as error:
            print(f"export_run.py: error: {error}: pip install {options.program}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
