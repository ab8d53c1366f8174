#!/usr/bin/env python3
"""Turns recorded answers of vLLM 0.33.0 into this folder's data: convert_oracle.py FOLDER OUT.

FOLDER holds selection-{cuda,rocm,cpu,xpu}.jsonl, mla-prefill.jsonl and backends.jsonl. Reasons become
the labels of our own enum; combination texts are known by a digest of their wording, so that none of
it stands here. One line a case: sections split by " | ", words by " ", fields as key=value.
"""
import hashlib
import json
import pathlib
import re
import sys

PLAIN = {
    "head_size": "head_size", "dtype": "dtype", "kv_cache_dtype": "kv_cache_dtype",
    "block_size": "block_size", "partial multimodal token full attention": "mm_prefix", "MLA": "mla",
    "non-MLA": "non_mla", "attention sinks": "sinks", "sparse": "sparse", "non-sparse": "non_sparse",
    "per-head quant scales": "head_scales", "compute capability": "capability",
    "sliding window": "sliding_window", "R-SWA": "prefix_window", "non-causal attention": "non_causal",
    "non-causal MLA attention with DCP": "non_causal_mla_dcp", "batch invariance": "batch_invariance",
    "KV connector": "kv_connector", "PCP": "pcp", "DCP": "dcp",
}
DIGESTS = {
    "a52954b55f": "load_failure", "7ac8ac390d": "load_failure", "9722008b21": "query_lengths",
    "2c80072050": "layout:turboquant", "1ba9fc5a87": "head_size",
    "158db386ee": "no_flashinfer_kernels", "dddca53c6b": "no_flashinfer_kernels",
    "fb309e94a3": "no_flashinfer_kernels", "eb2e4a898a": "package_missing",
    "2855047f49": "package_missing", "7ed1f4c56b": "package_missing", "45a007805a": "no_flash_attn_mla",
    "7ae4d27a2d": "dense_needs_hopper", "e769ca7a22": "sinks_need_9_0",
    "802946f182": "quantised_kv_needs_newer_flash_attn",
    "137b81842f": "quantised_kv_needs_newer_flash_attn", "598debe206": "prefix_needs_flash_attn_4",
    "cbaa17187a": "sparse_needs_hopper_or_blackwell", "98523bdb91": "needs_unquantised_kv",
    "14420cda71": "head_512", "7a3729e236": "nvfp4_needs_blackwell", "9c362550d1": "head_512_with_rope",
    "c5060b1fbc": "no_index_topk", "ac30ec33ae": "no_index_topk", "1c07751098": "no_index_topk",
    "55988e04c3": "no_fp8_ds_mla", "3d6f290919": "no_fp8_ds_mla",
    "4bfef37533": "causal_part_needs_flash_attn_3", "20cc295c37": "prefix_over_quantised_kv",
    "2d85767579": "not_compiled", "3fe9b952cc": "head_dims", "46394f55dc": "head_dims",
    "892331bf5e": "head_dims", "a752d85db6": "head_dims", "18b591fe9e": "head_dims",
    "a6e7aeb0c0": "head_dims_without_rope", "e8407130a0": "needs_blackwell",
    "dcfc1562ba": "sparse_only", "4e55cbf7b8": "index_topk", "bf090767c4": "index_topk",
    "f1f182bbd9": "needs_bfloat16_queries", "46321c548f": "nvfp4_at_head_64",
    "9fec8b5e41": "nvfp4_with_sinks", "a1ec3cba87": "no_dcp", "c885fac525": "query_heads",
}
NOT_COMBINATIONS = {"load_failure", "query_lengths", "head_size", "layout:turboquant"}
FLAGS = {
    "use_mla": "mla", "sparse": "sparse", "sinks": "sinks", "mm_prefix": "mmPrefix",
    "per_head_quant_scales": "headScales", "sliding_window": "window", "rswa": "prefixWindow",
    "non_causal": "nonCausal", "batch_invariant": "batchInvariant", "kv_connector": "connector",
    "pcp": "pcp", "dcp": "dcp", "adaptive_verification": "adaptive",
}
INSTALLED = {
    "flashinfer_package": "flashinfer", "flashinfer_cubin": "cubin", "nvcc_and_ninja": "nvcc",
    "nvidia_artifactory": "artifactory", "fa2": "fa2", "fa3": "fa3", "fa4": "fa4",
    "flashmla": "flashmla", "tokenspeed_mla_package": "tokenspeed", "b12x_package": "b12x",
    "cutlass_dsl_package": "cutlassDsl", "aiter_package": "aiter",
}
STANDARD = {"fa2", "fa3", "fa4", "flashmla", "cutlassDsl"}  # stated only when they are missing
SWITCHES = {
    "VLLM_ROCM_USE_AITER": "aiterOn", "VLLM_ROCM_USE_AITER_MHA": "aiterMha",
    "VLLM_ROCM_USE_AITER_MLA": "aiterMla", "VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT": "shuffle",
}
ROW_FLAGS = {
    "mla": "mla", "sparse": "sparse", "sink": "sinks", "mm_prefix": "mmPrefix",
    "per_head_quant_scales": "headScales", "sliding_window": "window", "rswa": "prefixWindow",
    "non_causal": "nonCausal", "batch_invariance": "batchInvariant", "kv_connector": "connector",
    "pcp": "pcp", "dcp": "dcp", "device_cpu_query_lens_mismatch": "queryLengths",
}


def reason(text):
    """Our code for one of upstream's reasons: a label, or combination:why."""
    if text.startswith("attention type "):
        return "kind"
    word = text.removesuffix(" not supported")
    if word in PLAIN:
        return PLAIN[word]
    if re.fullmatch(r"compute capability [\d.]+|dtype \w+", word):
        return "capability" if word[0] == "c" else "dtype"
    digest = hashlib.sha256(re.sub(r"[,;]? \(?got.*", "", text).encode()).hexdigest()[:10]
    if digest not in DIGESTS:
        sys.exit(f"a reason that is not known: {text}")
    label = DIGESTS[digest]
    return label if label in NOT_COMBINATIONS else "combination:" + label


def reasons(texts):
    return ",".join(reason(text) for text in texts)


def fields(**values):
    return [f"{key}={value}" for key, value in values.items() if value is not None]


def facts(row):
    env = row.get("installed_and_env", {})
    hardware = row.get("hardware", {})
    on = [name for key, name in INSTALLED.items() if env.get(key) and name not in STANDARD]
    off = [name for key, name in INSTALLED.items() if env.get(key) is False and name in STANDARD]
    on += [name for key, name in SWITCHES.items() if env.get("aiter_switches", {}).get(key)]
    on += [name for key, name in (("amx_tile", "amx"), ("avx512", "avx512")) if hardware.get(key)]
    if env.get("use_trtllm_attention") is False:
        on.append("trtllmOff")
    run = env.get("run_kv_cache_dtype")
    return [row.get("platform", "cuda")] + fields(
        cc=row.get("capability"), gfx=row.get("arch"), run=None if run == "auto" else run,
        flashAttn=env.get("flash_attn_version"), on=",".join(on) or None, off=",".join(off) or None)


def request(row):
    q = row["request"]
    words = fields(head=q["head_size"], dtype=q["dtype"], kv=q["kv_cache_dtype"] or "none",
                   block=q["block_size"], heads=row.get("query_heads"),
                   attn=None if q["attn_type"] == "decoder" else q["attn_type"])
    return words + [name for key, name in FLAGS.items() if q.get(key)]


def model(row):
    m = row.get("model")
    if m is None:
        return []
    words = fields(heads=m["query_heads"], kvHeads=m["kv_heads"], head=m["head_size"],
                   qkNope=m.get("qk_nope_head_dim"), qkRope=m.get("qk_rope_head_dim"),
                   vHead=m.get("v_head_dim"), rank=m.get("kv_lora_rank"), topk=m.get("index_topk"))
    return words + (["latent"] if m["use_mla"] else []) + (
        ["encoderDecoder"] if m["attn_type"] == "encoder_decoder" else [])


def blocks(rules):
    return ",".join(f"x{r['multiple_of']}" if "multiple_of" in r else str(r["exact"]) for r in rules)


def layouts(value):
    return "any" if value == "any" else ",".join(value)


def backend(name):
    return "XPU_FLASH_ATTN_MLA" if name == "XPUFlashAttnMLABackend" else name


def error(row):
    e = row["error"]
    if e is None:
        return []
    text = e["text"]
    if e["type"] == "NotImplementedError":
        return ["error=sparse"]
    if text.startswith("--kv-cache-dtype"):
        return ["error=kv_dtype"]
    if text.startswith("Invalid attention backend for xpu"):
        return ["error=other_platform"]
    if text.startswith("No valid"):
        return ["error=none_valid"]
    inner = re.search(r"configuration: \[(.*)\]", text)
    return ["error=forced_invalid"] + ([f"forcedReasons={reasons(inner[1].split('; '))}"] if inner else [])


def answer(row):
    words = fields(chosen=backend(row["chosen"]) if row["chosen"] else None, forced=row["forced"])
    words += error(row)
    if row.get("forced_reasons") is not None:
        words.append(f"forcedReasons={reasons(row['forced_reasons'])}")
    chosen = row.get("chosen_facts")
    if chosen:
        words += fields(blocks=blocks(chosen["kernel_blocks"]),
                        preferred=chosen["preferred_block_for_default_16"],
                        layouts=layouts(chosen["layouts"]))
    said = row.get("what_the_validator_would_have_said")
    if said is not None:
        words.append(f"validator={reasons(said)}")
    return words


def selection(row):
    tried = [c["backend"] + (":" + reasons(c["reasons"]) if c["reasons"] else "")
             for c in row.get("candidates", [])]
    return [[row["id"]] + facts(row), request(row), model(row), tried, answer(row)]


def prefill(row):
    tried = [name + (":" + reasons(texts) if texts else "")
             for name, texts in row["reasons_by_backend"].items()]
    asked = fields(dtype=row["dtype"], qkNope=row["qk_nope"], qkRope=row["qk_rope"], vHead=row["v"])
    return [[row["id"]] + facts(row), asked, [], tried,
            fields(chosen=row["chosen"], error="none_valid" if row["error"] else None)]


def surface(row):
    declared = fields(
        dtypes=",".join(row["dtypes"]), kv=",".join(row["kv_cache_dtypes"]),
        heads=",".join(map(str, row["head_sizes_accepted_of_probe"])),
        accepts=",".join(map(str, row["block_sizes_accepted_of_probe"])),
        blocks=blocks(row["kernel_blocks"]), preferred=row["preferred_block_for_default_16"],
        layouts=layouts(row["layouts"]), attn=",".join(row["attn_types"]),
        flags=",".join(name for key, name in ROW_FLAGS.items() if row[key]) or None,
        reported=None if row["reported_name"] == row["backend"] else row["reported_name"])
    if row["capability_ok"]:
        declared.append("capable")
    return [[row["backend"]] + facts(row), declared]


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    files = {f"selection-{name}": selection for name in ("cuda", "rocm", "cpu", "xpu")}
    files |= {"mla-prefill": prefill, "backends": surface}
    for name, convert in files.items():
        with open(source / f"{name}.jsonl") as lines, open(target / f"{name}.txt", "w") as out:
            for line in lines:
                out.write(" | ".join(" ".join(words) for words in convert(json.loads(line))) + "\n")


main()
