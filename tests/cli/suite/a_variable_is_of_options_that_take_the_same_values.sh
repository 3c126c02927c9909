# Options of several tools that one variable sets take values of the same kind; one of its own is listed with any other.
clidoc json > tools.json
python3 - << 'PYTHON'
import collections, itertools, json, sys

# Names of values that are said otherwise by tools whose options mean the same.
ALIKE = [{"FILE", "PATH"}, {"KEY", "PATH"}]


def take_the_same(one, other):
    names = {one.get("value"), other.get("value")}
    choices = [set(option.get("choices", [])) for option in (one, other)]
    return (len(names) == 1 or names in ALIKE) and (choices[0] == choices[1] or choices[0] & choices[1])


options_of = collections.defaultdict(list)
with open("tools.json") as file:
    for tool in json.load(file):
        for option in tool["options"]:
            if "environment" in option:
                options_of[option["environment"]].append((tool["tool"], option))
clashes = [f"{variable}: {one[0]} and {other[0]} take other values by it"
           for variable, options in options_of.items()
           for one, other in itertools.combinations(options, 2) if not take_the_same(one[1], other[1])]
sys.exit("\n".join(clashes) or None)
PYTHON
