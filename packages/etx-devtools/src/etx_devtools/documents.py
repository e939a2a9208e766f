# SPDX-License-Identifier: BSD-3-Clause
"""What `--json` of each command prints: a table of fields, and the JSON Schema of it."""

from __future__ import annotations

from typing import Any

__all__ = ["FIELDS", "schema"]

Field = tuple[str, str, str]
"""Path, types, meaning. `a.b` is in an object, `a[]` in a list, `a{}` under a name of the file."""


def _distance(path: str, what: str) -> tuple[Field, ...]:
    number = "number|string|null"
    return (
        (path, "object|null", f"{what}; numbers that JSON lacks are inf, -inf and nan"),
        (f"{path}.max_abs", number, "largest absolute error"),
        (f"{path}.max_rel", number, "largest relative error"),
        (f"{path}.mse", number, "mean squared error"),
        (f"{path}.l1", number, "mean absolute error"),
        (f"{path}.snr_db", number, "signal to noise, in dB"),
        (f"{path}.cosine", number, "cosine of both results"),
        (f"{path}.ulp", number, "largest error in units of the last place"),
        (f"{path}.at[]", "integer", "index of the worst element"),
        (f"{path}.got", number, "the worst element here"),
        (f"{path}.expected", number, "the worst element in eager mode"),
        (f"{path}.nan", "integer", "elements that are NaN"),
        (f"{path}.inf", "integer", "elements that are infinite"),
        (f"{path}.problem", "string", "why nothing can be compared, such as another shape"),
        (f"{path}.own{{}}", number, "metrics of --metric"),
    )


FIELDS: dict[str, tuple[Field, ...]] = {
    "bundle": (
        ("file", "string", "the .bpte that was written"),
        ("bytes", "integer", "its size"),
        ("cases{}", "integer", "test cases by method"),
    ),
    "verify": (
        ("file", "string", "the .bpte"),
        ("passed", "boolean", "whether every output is as expected"),
        ("rows[].method", "string", "name of the method"),
        ("rows[].case", "integer", "number of the test case"),
        ("rows[].output", "integer", "number of the output"),
        ("rows[].passed", "boolean", "whether it is close enough"),
        ("rows[].compared", "boolean", "whether the bundle expects something"),
        ("rows[].reason", "string", "why it did not pass, or was not compared"),
        ("rows[].max_abs", "number|string|null", "largest absolute error"),
        ("rows[].max_rel", "number|string|null", "largest relative error"),
        ("rows[].at[]", "integer", "index of the worst element"),
        ("rows[].got", "number|boolean|string|null", "the worst element"),
        ("rows[].expected", "number|boolean|string|null", "what it should be"),
        ("rows[].atol", "number", "what was allowed, absolute"),
        ("rows[].rtol", "number", "what was allowed, relative"),
    ),
    "size": (
        ("file", "string", "the file"),
        ("bytes", "integer", "its size: the sum of the rows"),
        ("by", "string", "operator, weight or module"),
        ("rows[].name", "string", "what takes the bytes"),
        ("rows[].bytes", "integer", "how many"),
        ("rows[].pieces", "integer", "in how many pieces of the file"),
    ),
    "diff": (
        ("files[]", "string", "before, after"),
        ("sizes[]", "integer", "bytes before, after"),
        ("weight_bytes[]", "integer", "bytes of weights before, after"),
        ("operators{}[]", "integer", "calls before, after, where they differ"),
        ("delegates{}[]", "integer", "delegates before, after, where they differ"),
        ("named_data[]", "string", "what differs in named data"),
        ("methods[].name", "string", "name of the method"),
        ("methods[].instructions[]", "integer", "before, after"),
        ("methods[].arenas[][]", "integer", "bytes of each arena, before and after"),
        ("methods[].signature[]", "string", "what differs in inputs and outputs"),
        ("methods[].changes[].kind", "string", "added, removed, changed, replaced, moved, ..."),
        ("methods[].changes[].text", "string", "the change in a line"),
        ("methods[].changes[].before[]", "integer", "instructions that it concerns, before"),
        ("methods[].changes[].after[]", "integer", "and after"),
        ("methods[].equal_weights", "integer", "weights that are equal"),
        ("methods[].weights[].name", "string", "the weight, or who reads it"),
        ("methods[].weights[].change", "string", "values, retyped, reshaped, added, removed"),
        ("methods[].weights[].before", "string", "type before"),
        ("methods[].weights[].after", "string", "type after"),
        ("methods[].weights[].largest", "number|null", "largest difference of two elements"),
        ("methods[].weights[].readers[][]", "integer", "instructions that read it"),
        ("only_before[]", "string", "methods that were removed"),
        ("only_after[]", "string", "methods that were added"),
        ("run", "object|null", "with --run"),
        ("run.method", "string", "the method that was run"),
        ("run.milliseconds[]", "number", "median of a call before, after"),
        ("run.outputs[]", "number|null", "largest difference of each output"),
        ("same", "boolean", "whether the programs are the same"),
        ("exceeded[]", "string", "limits of --fail-if that were exceeded"),
    ),
    "profile of two": (
        ("files[]", "object", "each as `profile` has it"),
        ("by", "string", "operator, module, line or instruction"),
        ("pairs[].name", "string", "of the line, the largest change first"),
        (
            "pairs[].before_ms",
            "number|null",
            "median time in the first file, null without the line",
        ),
        ("pairs[].after_ms", "number|null", "and in the second"),
        ("pairs[].module", "string|null", "path of the module"),
        ("pairs[].source", "string|null", "file and line"),
        ("pairs[].change_ms", "number", "how much longer it takes in the second"),
        ("pairs[].ratio", "number|null", "the second's time by the first's"),
    ),
    "profile": (
        ("file", "string", "the file"),
        ("method", "string", "the method"),
        ("executions", "integer", "recorded calls"),
        ("load_ms", "number|null", "time to load the method"),
        ("first_ms", "number|null", "time of the first call"),
        ("untraced_ms", "number|null", "median of a call that is not recorded"),
        ("traced_ms", "number|null", "median of a recorded call"),
        ("recording_ns", "number|null", "cost of recording an instruction, taken off"),
        ("inner_recording_ns", "number|null", "that of an event within a delegate"),
        ("total_ms", "number", "sum of the instructions' medians"),
        ("attributed", "number", "share of the time that has a module or a line"),
        ("failures[].instruction", "integer", "where a recorded call ended"),
        ("failures[].operator", "string", "what it calls"),
        ("failures[].module", "string", "where in the model it comes from"),
        ("failures[].source", "string", "file and line"),
        ("failures[].error", "string", "name of the error"),
        ("scratch_bytes", "integer|null", "most beside planned memory, of an instruction"),
        ("scratch_instruction", "integer|null", "its index"),
        ("missing_events", "integer", "events that the dump had no room for"),
        ("by", "string", "operator, module, line or instruction"),
        ("lines[].name", "string", "of the operator, module, line or instruction"),
        ("lines[].calls", "integer", "instructions"),
        ("lines[].ms", "number", "median time"),
        ("lines[].share", "number", "of the total, 0 to 1"),
        ("lines[].p10_ms", "number", "tenth percentile"),
        ("lines[].p90_ms", "number", "ninetieth percentile"),
        ("lines[].depth", "integer", "in the tree of modules, or inside of a delegate"),
        ("lines[].own_ms", "number|null", "of a module without those in it"),
        ("lines[].module", "string|null", "where it comes from"),
        ("lines[].source", "string|null", "file and line"),
        ("lines[].shape", "string", "type of the result"),
        ("lines[].*", "any", "flop, bytes, gflop_s, gb_s, of_peak: null where not known"),
        ("*", "any", "peak_gflop_s and peak_gb_s of the machine, null where not measured"),
    ),
    "compare": (
        ("file", "string", "the file"),
        ("model", "string", "what it was compared with"),
        ("random_inputs_only", "boolean", "whether no real data was compared"),
        ("stripped", "boolean", "whether the file says no values"),
        ("compiled_again", "boolean", "with --inside"),
        ("ran", "string", "here, or where else it was run"),
        ("against", "string|null", "with --against: the other program"),
        ("bisection", "object|null", "with --bisect: nodes, steps, compilations, name, ..."),
        ("written[]", "string", "files of --reduce"),
        ("methods_left_out[]", "string", "methods that were not compared"),
        ("first", "object|null", "the first check that is wrong, and its call"),
        ("calls[].method", "string", "the method"),
        *_distance("calls[].outputs[]", "how far each output is from eager mode"),
        *_distance("calls[].state{}", "the same of each buffer after the call"),
        ("calls[].not_run", "integer", "instructions that were not reached"),
        ("calls[].layers[].*", "any", "with --float: instruction, value, float_value, module, dB"),
        ("calls[].checks[].instruction", "integer", "index of the instruction"),
        ("calls[].checks[].operator", "string", "what it calls"),
        ("calls[].checks[].dtype", "string", "type of the result"),
        ("calls[].checks[].shape[]", "integer", "its shape"),
        ("calls[].checks[].wrong", "boolean", "whether it makes more error than rounding explains"),
        ("calls[].checks[].*", "any", "slot, module, source, value, by, allowed, cause, ..."),
        *_distance("calls[].checks[].made", "the same of the error made here"),
        *_distance("calls[].checks[].arrived", "the same of the error from eager mode"),
    ),
    "report": (
        ("file", "string", "name of the file"),
        ("bytes", "integer", "its size"),
        ("texts[]", "string", "every text once; rows hold numbers of them"),
        ("measured", "boolean", "whether times are known"),
        ("advice[]", "string", "what stands out"),
        ("sizes{}[][]", "integer", "by operator, weight and module: text, bytes"),
        ("methods[].name", "string", "name of the method"),
        (
            "methods[].rows[][]",
            "any",
            "operator, module, line, origin, arguments, ...",
        ),
        ("methods[].times", "array|null", "milliseconds of each instruction"),
        ("methods[].errors", "array|null", "instruction, made here, arrived, allowed"),
        ("methods[].inputs[]", "integer", "texts of their types"),
        ("methods[].outputs[]", "integer", "texts of their types"),
        ("methods[].delegates[][]", "any", "instruction, name, what is inside"),
        ("methods[].memory[]", "object", "arenas: id, bytes, least, boxes"),
        ("methods[].stages", "array|null", "name, equation, changed, counts, removed, added"),
        ("methods[].reasons", "array|null", "operator, partitioner, reason, times, instructions"),
        ("methods[].left", "array|null", "operator, pass, reason, times, place"),
        ("before", "object", "of two files, the document of the first"),
        ("changes", "object", "of two files, what etx diff finds"),
    ),
}
OPTIONAL = {"before", "changes", "made", "arrived", "problem", "own"}


def schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what `etx <command> --json` prints."""
    root: dict[str, Any] = {"type": "object"}
    for path, types, meaning in FIELDS[command]:
        _place(root, path, types.split("|"), meaning)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root}


def _place(node: dict[str, Any], path: str, types: list[str], meaning: str) -> None:
    for part in path.split("."):
        if part == "*":
            node["additionalProperties"] = True
            return
        name = part.rstrip("[]{}")
        properties = node.setdefault("properties", {})
        node.setdefault("additionalProperties", False)
        if name not in OPTIONAL and name not in node.setdefault("required", []):
            node["required"].append(name)
        node = properties.setdefault(name, {"type": "object"})
        rest = part[len(name) :]
        while rest:
            if rest.startswith("[]"):
                node["type"] = "array"
                node = node.setdefault("items", {"type": "object"})
            else:
                node = node.setdefault("additionalProperties", {"type": "object"})
            rest = rest[2:]
    node["description"] = meaning
    if types == ["any"]:
        node.pop("type")
    else:
        node["type"] = types if len(types) > 1 else types[0]
