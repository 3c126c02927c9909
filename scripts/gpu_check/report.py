"""report.md of the lines that the steps have written."""
import json


def cell(value):
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def rows_of(figures):
    """Names and values, those of inner objects by both names."""
    for name, value in figures.items():
        if isinstance(value, dict):
            for inner, inner_value in rows_of(value):
                yield f"{name}: {inner}", inner_value
        else:
            yield name, value


def write(out):
    records = [json.loads(line) for line in (out / "steps.jsonl").read_text().splitlines()]
    lines = ["# Trainwright on a GPU", "", "| step | status | seconds | ended | problem |", "|---|---|---|---|---|"]
    for record in records:
        problem = " ".join((record["problem"] or "").split())[:300].replace("|", "/")
        lines.append(f"| {record['step']} | {record['status']} | {record['time_s']} | {record['ended']} | {problem} |")
    for record in records:
        if record["figures"]:
            lines += ["", f"## {record['step']}", "", "| figure | value |", "|---|---|"]
            lines += [f"| {name} | {cell(value)} |" for name, value in rows_of(record["figures"])]
    (out / "report.md").write_text("\n".join(lines) + "\n")
