"""Turns recorded answers of vLLM 0.33 about blocks, groups and layouts into the cases of these tests.

Usage: convert_kv_oracle.py DIRECTORY_WITH_JSONL

Writes oracle/blocks.jsonl, groups.jsonl and layouts.jsonl beside this file: inputs, numbers and our
own error labels, none of the other engine's texts.
"""
import json
import pathlib
import sys

BLOCK_ERRORS = [
    ("No common block size", "no_kernel_block"),
    ("share no supported", "no_shared_block"),
    ("Aligned KV cache block size", "rejected_block"),
    ("empty sequence", "no_kernel_sizes"),
]
GROUP_ERRORS = [
    ("Failed to promote", "promotion"),
    ("same window size", "windows"),
    ("cannot be padded", "pages"),
    ("unexpected keyword", "unknown"),
    ("cannot express", "mixed_pages"),
    ("Page padding requires", "padded_pieces"),
    ("Invalid prefix_match_unit", "unit"),
]
LAYOUT_ERRORS = [
    ("No KV cache layout", "no_common"),
    ("disagree", "disagree"),
    ("block-compact", "not_compact"),
    ("Invalid value", "unknown"),
    ("Unknown KV cache layout", "unknown"),
    ("does not satisfy", "not_candidate"),
    ("already resolved", "recorded"),
    ("cannot express", "mixed_pages"),
    ("Page padding requires", "padded_pieces"),
    ("must divide", "uneven_split"),
    ("do not support kernel block", "padded_split"),
    ("does not store blocks as dense", "split_blocks"),
]
ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "uint8": 1, "int8": 1}


def label(error, table, default):
    for text, name in table:
        if text in error["text"]:
            return name
    return default


def row(backend):
    """m16,64|48>64: kernel blocks, the manager blocks that replace them, the preferred one."""
    sizes = [str(s["exact"]) if "exact" in s else f"m{s['multiple_of']}" for s in backend["kernel_sizes"]]
    text = ",".join(sizes)
    if "accepts_only" in backend:
        text += "|" + ",".join(str(s) for s in backend["accepts_only"])
    if "prefers" in backend:
        text += f">{backend['prefers']}"
    return text


def spec(s):
    out = {"kind": s["kind"], "block": s["block"]}
    if "shapes" in s:
        out["states"] = [[ELEMENT_BYTES[d], *shape] for d, shape in zip(s["dtypes"], s["shapes"])]
        if s.get("mode") == "align":
            out["aligned"] = True
    else:
        out.update(heads=s["kv_heads"], size=s["head_size"], bytes=ELEMENT_BYTES[s["dtype"]])
    for theirs, ours in (("window", "window"), ("chunk", "window"), ("page_padded", "padded"),
                         ("head_size_v", "valueSize"), ("head_slots", "slots"), ("state_bytes", "content"),
                         ("tokens_per_state", "tokensPerState"), ("alignment", "multiple"),
                         ("sharded", "sharded")):
        if s.get(theirs) is not None:
            out[ours] = s[theirs]
    return out


def block_case(r):
    kind = r["kind"]
    if kind == "one backend":
        return {"ask": "row", "row": row(r["backend"]), "tokens": r["size"],
                "want": [int(r["accepts"]), r["preferred_for_default"]]}
    if kind == "plan":
        case = {"ask": "plan", "groups": [[row(b) for b in g] for g in r["groups"]], "requested": r["requested"] or 0}
        if r.get("error"):
            return case | {"want": label(r["error"], BLOCK_ERRORS, "other")}
        rows = [b["name"] for g in r["groups"] for b in g]
        kernels = [k if isinstance(k, int) else 0 for k in r["kernel_blocks"]]
        case["want"] = [r["manager_block"], kernels]
        if "rejected_at_selection_by" in r:
            case["rejecting"] = [rows.index(name) for name in r["rejected_at_selection_by"]]
        return case
    if kind == "kernel blocks at worker setup":
        case = {"ask": "worker", "layout": r["layout"], "blocks": r["num_blocks"],
                "groups": [{"layers": g["layers"], "spec": spec(g["spec"]), "rows": [row(b) for b in g["backends"]]}
                           for g in r["groups"]]}
        if r["error"]:
            return case | {"want": label(r["error"], BLOCK_ERRORS, "other")}
        case["want"] = r["result"]
        views = r["first_view_shape_then_strides_in_elements"]
        case["view"] = views if views else label(r["view_error"], LAYOUT_ERRORS, "other")
        return case
    if kind == "view with kernel blocks":
        case = {"ask": "view", "spec": spec(r["spec"]), "blocks": r["blocks"], "layers": r["layers"],
                "layout": r["layout"], "kernel": r["kernel_block"]}
        if r["error"]:
            return case | {"want": label(r["error"], LAYOUT_ERRORS, "other")}
        return case | {"want": [[v["offset_bytes"], v["shape"], v["strides_in_elements"]] for v in r["result"]]}
    rows = [row(b) for b in r["backends"]]
    if kind == "common kernel block":
        want = label(r["error"], BLOCK_ERRORS, "other") if r["error"] else r["result"]
        return {"ask": "kernel", "rows": rows, "tokens": r["manager_block"], "want": want}
    if kind == "phase 1":
        want = label(r["error"], BLOCK_ERRORS, "other") if r["error"] else r["result"]
        return {"ask": "shared", "rows": rows, "tokens": r["default"], "want": want}
    names = [b["name"] for b in r["backends"]]
    rejecting = []
    if r["error"] and "Aligned" in r["error"]["text"]:
        listed = r["error"]["text"].rsplit(": ", 1)[1].rstrip(".").split(", ")
        rejecting = [names.index(name) for name in listed]
    if kind == "post-alignment check":
        return {"ask": "check", "rows": rows, "before": r["before"], "after": r["after"], "want": rejecting}
    model = r["model"]
    case = {"ask": "update", "platform": {"base": "gpu"}.get(r["platform"], r["platform"]), "rows": rows,
            "requested": r["requested"] or 0, "heads": model["kv_heads"], "size": model["head_size"],
            "cache": r["cache_dtype"]}
    for name, value in (("latent", model["mla"]), ("wide", bool(r["skip_layers"])), ("gatedDelta", r["has_gdn_layer"]),
                        ("aligned", r["mamba_cache_mode"] == "align"),
                        ("packed", any(b.get("packs_like_flashinfer_nvfp4") for b in r["backends"]))):
        if value:
            case[name] = True
    if r["prefill_checkpoint_alignment"]:
        case["checkpoint"] = r["prefill_checkpoint_alignment"]
    if r["mamba"]:
        mamba = {"kind": "mamba", "block": 1, "shapes": r["mamba"]["shapes"], "dtypes": r["mamba"]["dtypes"]}
        case["spec"] = spec(mamba)
    result = r["result"]
    case["want"] = [result["block"], result["mamba_block"] or 0, result["mamba_page_padded"] or 0,
                    result["skip_page_padded"] or 0]
    if r["error"]:
        case["error"] = label(r["error"], BLOCK_ERRORS, "other")
        case["rejecting"] = rejecting
    return case


def cache_facts(s):
    kind = s["kind"]
    return [kind, s["block"], s["page"], s.get("page_padded") or 0, s.get("window") or 0, s.get("chunk") or 0,
            s.get("H", 0), s.get("N", 0), s.get("C", 0)]


def runs(items):
    out = []
    for item in items:
        if out and out[-1][1] == item:
            out[-1][0] += 1
        else:
            out.append([1, item])
    return out


def group_case(r):
    if r["kind"] == "page":
        case = {"ask": "page", "spec": spec(r["spec"]), "length": r.get("max_model_len", 8192),
                "inFlight": r.get("in_flight", 256)}
        if r["spec"]["kind"] == "cross":
            case["encoder"] = 1500
        if r["error"]:
            return case | {"want": "no_page"}
        p = r["result"]
        return case | {"want": [p["page"], p["H"], p["N"], p["C"], r["blocks_per_request"]]}
    names = [layer["name"] for layer in r["layers"]]
    specs = []
    order = []
    for layer in r["layers"]:
        s = spec(layer["spec"])
        if s not in specs:
            specs.append(s)
        order.append(specs.index(s))
    case = {"ask": "groups", "layout": r["layout"], "memory": r["memory"], "specs": specs, "layers": runs(order)}
    for theirs, ours in (("hybrid_manager_disabled", "oneLifetime"), ("max_model_len", "length"),
                         ("in_flight", "inFlight"), ("prefix_match_unit", "unit"), ("blocks_override", "blocks")):
        if r.get(theirs):
            case[ours] = r[theirs]
    if r.get("prefix_caching") is False:
        case["prefixCache"] = False
    if r.get("error"):
        case["error"] = label(r["error"], GROUP_ERRORS, "empty_group" if r["error"]["type"] == "StopIteration" else "other")
    if "groups" in r:
        case["groups"] = []
        for g in r["groups"]:
            members = [names.index(name) for name in g["layer_names"]]
            s = g["spec"]
            if s["kind"] == "uniform type":
                facts = runs([cache_facts(s["layers"][name]) for name in g["layer_names"]])
                case["groups"].append({"layers": members, "mixed": facts, "block": s["block"], "page": s["page"]})
            else:
                case["groups"].append({"layers": members, "cache": cache_facts(s)})
    if r.get("error"):
        return case
    case["pool"] = [r["bytes_per_block"] or 0, r["num_blocks"]]
    case["placements"] = [[[names.index(n) for n in t["layers"]], t["size"], t["layer_stride"], t["block_stride"],
                           t["offset"]] for t in r["tensors"]]
    if r.get("granularity_error"):
        case["units"] = "unit"
    elif r.get("scheduler_and_hash_block"):
        case["units"] = r["scheduler_and_hash_block"]
    if r.get("blocks_per_request_by_group"):
        case["perRequest"] = r["blocks_per_request_by_group"]
    return case


def layout_case(r):
    kind = r["kind"]
    if kind == "layout facts":
        return {"ask": "facts", "layout": r["layout"], "want": [
            r["order"], int(r["layer_compact"]), int(r["block_outermost"]), int(r["block_compact"]), r["flashinfer_name"] or ""]}
    want = label(r["error"], LAYOUT_ERRORS, "other") if r.get("error") else None
    if kind == "strides":
        case = {"ask": "strides", "spec": spec(r["spec"]), "blocks": r["blocks"], "layers": r["layers"],
                "layout": r["layout"]}
        if r["kernel_block"]:
            case["kernel"] = r["kernel_block"]
        if r["fixed_strides"]:
            case["fixed"] = [s or 0 for s in r["fixed_strides"]]
        if not want:
            x = r["result"]
            runs_of = x["runs_per_page_derived"]
            want = [x["shape"], x["strides"], x["page"], runs_of["count"], runs_of["first_bytes"]]
        return case | {"want": want}
    if kind == "candidates":
        lists = [[] if entry == "any" else entry for entry in r["backend_layouts"]]
        return {"ask": "candidates", "lists": lists, "want": want or r["result"]}
    if kind == "resolve":
        case = {"ask": "resolve", "workers": r["workers"], "specs": [spec(s) for s in r["specs"]]}
        for theirs, ours in (("env_layout", "asked"), ("connector_layout", "preferred"), ("already_recorded", "recorded")):
            if r[theirs]:
                case[ours] = r[theirs]
        return case | {"want": want or r["result"]}
    if kind == "record":
        case = {"ask": "record", "name": r["new"]}
        if r["already"]:
            case["recorded"] = r["already"]
        return case | {"want": want or r["result"]}
    return {"ask": "express", "layout": r["layout"], "groups": [[spec(s) for s in g] for g in r["groups"]],
            "want": want or "ok"}


def main():
    source = pathlib.Path(sys.argv[1])
    target = pathlib.Path(__file__).parent / "oracle"
    target.mkdir(exist_ok=True)
    for theirs, ours, convert in (("blocksize", "blocks", block_case), ("groups", "groups", group_case),
                                  ("layouts", "layouts", layout_case)):
        with open(target / f"{ours}.jsonl", "w") as out:
            for line in open(source / f"{theirs}.jsonl"):
                recorded = json.loads(line)
                case = {"id": recorded["id"]} | convert(recorded)
                out.write(json.dumps(case, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
