"""What export_run.py hands to MLflow and to W&B: stand-ins record it, and the libraries' own readers read it back.

usage: export_run_test.py SOURCE_DIR [mlflow | wandb]

With the name of a library, this one writes a run and reads it back; exits with 77 where it is not installed.
"""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)) / "scripts"))
import export_run  # noqa: E402

PACKAGES = {"mlflow": ["mlflow", "sqlalchemy"], "wandb": ["wandb"]}

PLAN = {"batch": 2, "lora": {"rank": 4, "targets": "all-linear"}, "drop_last": False}
RECORDS = [
    {"type": "run_begin", "time_unix_s": 10.0, "step": 0, "version": "0.1.0", "plan": PLAN, "model": {"hidden_size": 8}},
    {"type": "step", "time_unix_s": 11.0, "step": 1, "loss_nats": 3.5, "lr": 1e-3, "mfu": None, "saving": False,
     "dtypes": {"weights": "bf16"}, "loss_terms": {"z": 0.25}},
    {"type": "eval", "time_unix_s": 11.5, "step": 1, "loss_nats": 3.25, "tokens": 7},
    {"type": "warning", "time_unix_s": 11.6, "step": 1, "message": "x"},
    {"type": "step", "time_unix_s": 12.0, "step": 2, "loss_nats": 3.0, "lr": 5e-4},
    {"type": "run_end", "time_unix_s": 13.0, "step": 2, "exit_status": 0, "reason": "complete"},
]
METRICS = {("loss_nats", 3.5, 11000, 1), ("lr", 1e-3, 11000, 1), ("loss_terms.z", 0.25, 11000, 1),
           ("eval_loss_nats", 3.25, 11500, 1), ("eval_tokens", 7, 11500, 1), ("loss_nats", 3.0, 12000, 2),
           ("lr", 5e-4, 12000, 2)}
PARAMETERS = {"plan.batch": 2, "plan.lora.rank": 4, "plan.lora.targets": "all-linear", "plan.drop_last": False,
              "model.hidden_size": 8, "version": "0.1.0"}


def stand_in_mlflow(log):
    class Client:
        def __init__(self, tracking_uri):
            log.append(("uri", tracking_uri))

        def get_experiment_by_name(self, name):
            return None

        def create_experiment(self, name):
            return "7"

        def create_run(self, experiment_id, start_time, run_name):
            log.append(("run", experiment_id, start_time, run_name))
            return types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))

        def log_batch(self, run_id, metrics=(), params=(), tags=()):
            log.extend(("metric", item) for item in metrics)
            log.extend(("param", item) for item in params)

        def set_terminated(self, run_id, status, end_time):
            log.append(("end", status, end_time))

    entities = types.SimpleNamespace(Metric=lambda *values: values, Param=lambda *values: values, RunTag=lambda *values: values)
    return {"mlflow": types.ModuleType("mlflow"), "mlflow.entities": entities,
            "mlflow.tracking": types.SimpleNamespace(MlflowClient=Client)}


class RunFolderTest(unittest.TestCase):
    """With a folder of its own for runs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, records, tail=""):
        (self.folder / name).mkdir()
        (self.folder / name / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records) + tail)
        return str(self.folder / name)

    def export(self, *arguments):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = export_run.main(list(arguments))
        return status, out.getvalue() + errors.getvalue()


class ExportRunTest(RunFolderTest):
    def to_stand_in(self, records, tail=""):
        log = []
        with mock.patch.dict(sys.modules, stand_in_mlflow(log)):
            status, text = self.export("mlflow", self.write("run", records, tail), "--to", "sqlite:///x.db")
        self.assertEqual(status, 0, text)
        return log

    def test_mlflow_gets_every_number_at_its_step_and_the_plan(self):
        log = self.to_stand_in(RECORDS)
        self.assertIn(("uri", "sqlite:///x.db"), log)
        self.assertIn(("run", "7", 10000, "run"), log)
        self.assertEqual({entry[1] for entry in log if entry[0] == "metric"}, METRICS)
        parameters = dict(entry[1] for entry in log if entry[0] == "param")
        self.assertEqual(parameters, {name: json.dumps(value) if isinstance(value, bool) else str(value)
                                      for name, value in PARAMETERS.items()})
        self.assertIn(("end", "FINISHED", 13000), log)

    def test_numbers_of_lists_become_metrics_named_by_their_place(self):
        step = {"type": "step", "time_unix_s": 12.5, "step": 3, "source_tokens": [40, 2], "texts": ["a"]}
        log = self.to_stand_in([dict(RECORDS[0], plan={"betas": [0.9, 0.95]}), step, RECORDS[-1]])
        self.assertEqual({entry[1] for entry in log if entry[0] == "metric"},
                         {("source_tokens.0", 40, 12500, 3), ("source_tokens.1", 2, 12500, 3)})
        self.assertIn(("param", ("plan.betas", "[0.9, 0.95]")), log)

    def test_a_failed_run_is_failed_and_one_that_was_killed_is_running(self):
        self.assertIn(("end", "FAILED", 13000), self.to_stand_in(RECORDS[:-1] + [dict(RECORDS[-1], exit_status=6)]))
        (self.folder / "run" / "metrics.jsonl").unlink()
        (self.folder / "run").rmdir()
        log = self.to_stand_in(RECORDS[:-1], tail='{"type": "step", "ti')
        self.assertFalse([entry for entry in log if entry[0] == "end"])
        self.assertEqual({entry[1] for entry in log if entry[0] == "metric"}, METRICS)

    def test_a_text_holds_any_character_and_a_last_line_is_cut_anywhere(self):
        odd = "a\u2028b\u0085c\x0b\u00e9"
        records = [dict(RECORDS[0], plan={"template": odd}), *RECORDS[1:]]
        (self.folder / "run").mkdir()
        lines = [json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records]
        begun = json.dumps({"type": "warning", "message": "\u00e9"}, ensure_ascii=False).encode()
        for rest in (b"", begun[:begun.index(b"\xc3") + 1]):
            (self.folder / "run" / "metrics.jsonl").write_bytes(b"".join(lines) + rest)
            self.assertEqual(export_run.Run(self.folder / "run").parameters["plan.template"], odd)
        (self.folder / "run" / "metrics.jsonl").write_bytes(lines[0] + b'{"type": "step\xff"}\n' + lines[1])
        with self.assertRaisesRegex(export_run.BadRun, "line 2 is no record"):
            export_run.Run(self.folder / "run")

    def to_wandb_stand_in(self, name, records, tail=""):
        log = []
        run = types.SimpleNamespace(log=lambda values, step: log.append((step, values)),
                                    finish=lambda exit_code: log.append(("end", exit_code)))
        module = types.SimpleNamespace(init=lambda **options: log.append(options) or run, Settings=lambda **options: options)
        with mock.patch.dict(sys.modules, {"wandb": module}):
            status, text = self.export("wandb", self.write(name, records, tail), "--to", str(self.folder / "w"),
                                       "--project", "p")
        self.assertEqual(status, 0, text)
        return log

    def test_wandb_shows_no_run_without_an_end_as_finished(self):
        killed = self.to_wandb_stand_in("killed", RECORDS[:-1], tail='{"type": "step", "ti')
        self.assertEqual(killed[-1], ("end", 1))
        failed = self.to_wandb_stand_in("failed", RECORDS[:-1] + [dict(RECORDS[-1], exit_status=6)])
        self.assertEqual(failed[-1], ("end", 6))

    def test_wandb_gets_an_offline_run_with_one_row_a_step(self):
        log = self.to_wandb_stand_in("run", RECORDS)
        options, *rows, end = log
        self.assertEqual((options["mode"], options["project"], options["name"], options["config"]),
                         ("offline", "p", "run", PARAMETERS))
        self.assertEqual([step for step, _ in rows], [1, 2])
        self.assertEqual({(name, value, step) for step, values in rows for name, value in values.items() if name != "_timestamp"},
                         {(name, value, step) for name, value, _, step in METRICS})
        self.assertEqual(end, ("end", 0))

    def test_what_is_no_run_is_refused_before_anything_is_written(self):
        whole = self.write("whole", RECORDS)
        for records, tail in ((RECORDS[1:], ""), ([], ""), (RECORDS[:1], "junk\n" + json.dumps(RECORDS[1]) + "\n")):
            log = []
            bad = self.write(f"bad{len(records)}{len(tail)}", records, tail)
            with mock.patch.dict(sys.modules, stand_in_mlflow(log)):
                status, text = self.export("mlflow", whole, bad)
            self.assertEqual(status, 3, text)
            self.assertIn("metrics.jsonl", text)
            self.assertEqual(log, [])
        self.assertEqual(self.export("mlflow", str(self.folder / "missing"))[0], 3)

    def test_a_missing_library_is_named_with_its_command(self):
        with mock.patch.dict(sys.modules, {"mlflow.entities": None, "mlflow": None, "wandb": None}):
            for program in ("mlflow", "wandb"):
                status, text = self.export(program, self.write(program, RECORDS), "--to", str(self.folder))
                self.assertEqual(status, 2)
                self.assertIn(f"pip install {program}", text)


class MlflowsReaderTest(RunFolderTest):
    def test_finds_every_number_at_its_step_and_time(self):
        from mlflow.tracking import MlflowClient
        uri = f"sqlite:///{self.folder}/m.db"
        status, text = self.export("mlflow", self.write("run", RECORDS), "--to", uri, "--experiment", "e")
        self.assertEqual(status, 0, text)
        client = MlflowClient(tracking_uri=uri)
        run, = client.search_runs([client.get_experiment_by_name("e").experiment_id])
        self.assertEqual((run.info.run_name, run.info.status, run.info.end_time), ("run", "FINISHED", 13000))
        found = {(metric.key, metric.value, metric.timestamp, metric.step)
                 for name in run.data.metrics for metric in client.get_metric_history(run.info.run_id, name)}
        self.assertEqual(found, METRICS)
        self.assertEqual(run.data.params["plan.lora.rank"], "4")


class WandbsReaderTest(RunFolderTest):
    def offline_records(self, records):
        """The records of the .wandb file of an exported run, as W&B's own reader takes them from the disk."""
        from wandb.proto import wandb_internal_pb2
        from wandb.sdk.internal.datastore import DataStore
        with mock.patch.dict(os.environ, {"WANDB_MODE": "offline"}):
            status, text = self.export("wandb", self.write("run", records), "--to", str(self.folder / "w"), "--project", "p")
        self.assertEqual(status, 0, text)
        file, = (self.folder / "w/wandb").glob("offline-run-*/*.wandb")
        store = DataStore()
        store.open_for_scan(str(file))
        found = []
        while (data := store.scan_data()) is not None:
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            found.append(record)
        return found

    @staticmethod
    def values(items):
        """{name: value} of items of a row or of a configuration, which have one of two forms of names."""
        return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}

    def test_finds_every_number_at_its_step_and_the_plan(self):
        records = self.offline_records(RECORDS)
        rows = [self.values(record.history.item) for record in records if record.WhichOneof("record_type") == "history"]
        steps = {row["_step"]: row for row in rows}
        self.assertEqual(len(steps), len(rows))
        found = {(name, value, step) for step, row in steps.items() for name, value in row.items() if not name.startswith("_")}
        self.assertEqual(found, {(name, value, step) for name, value, _, step in METRICS})
        # A row holds a step and its evaluation: it has the time of the former.
        self.assertEqual({step: row["_timestamp"] for step, row in steps.items()}, {1: 11, 2: 12})
        run, *_ = (record.run for record in records if record.WhichOneof("record_type") == "run")
        self.assertEqual((run.project, run.display_name), ("p", "run"))
        config = self.values(run.config.update)
        for record in records:
            config.update(self.values(record.config.update))
        self.assertEqual({name: config.get(name) for name in PARAMETERS}, PARAMETERS)

    def test_finds_the_exit_status_of_a_run_that_failed(self):
        records = self.offline_records(RECORDS[:-1] + [dict(RECORDS[-1], exit_status=6)])
        end, = (record.exit for record in records if record.WhichOneof("record_type") == "exit")
        self.assertEqual(end.exit_code, 6)


def main():
    cases = ExportRunTest
    if len(sys.argv) > 1:
        program = sys.argv.pop(1)
        cases = {"mlflow": MlflowsReaderTest, "wandb": WandbsReaderTest}[program]
        missing = [package for package in PACKAGES[program] if importlib.util.find_spec(package) is None]
        if missing:
            print(f"no Python package {' or '.join(missing)}; PYTHON may name a Python that has it")
            return 77
    return unittest.main(defaultTest=cases.__name__)


if __name__ == "__main__":
    sys.exit(main())
