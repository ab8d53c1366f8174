#!/usr/bin/env python3
"""Writes the Grafana dashboards:  charts/dashboards.py FOLDER

The committed ones are in charts/ashlar/files/monitoring; tests/monitoring compares. A panel is one line below: kind, title, unit,
what it says, and its queries as {legend: expression}. MODELS stands for the two variables of the dashboards of models, HOOKS for the
one of the operator's.
"""
import json
import os
import sys

MODELS = 'namespace=~"$namespace", job=~"$job"'
HOOKS = 'job=~"$hooks"'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Shares and quantiles of nothing are NaN.
NO_TRAFFIC = [{"type": "special", "options": {"match": "null+nan", "result": {"text": "no traffic", "index": 0}}}]
PASSED = [{"type": "value", "options": {"0": {"text": "not passed", "color": "red", "index": 0},
                                        "1": {"text": "passed", "color": "green", "index": 1}}}]


def quantiles(histogram, by="", values=(0.5, 0.95, 0.99), of="MODELS"):
    """The histogram's quantiles over all pods, for each value of the label `by`."""
    labels, legend = (f"le, {by}", f"{{{{{by}}}}} ") if by else ("le", "")
    return {f"{legend}p{q * 100:g}": f"histogram_quantile({q}, sum by ({labels}) (rate({histogram}_bucket{{{of}}}[$__rate_interval])))"
            for q in values}


def rate(counter, by="", of="MODELS"):
    """The counter's rate over all pods, for each value of the label `by`."""
    return f"sum by ({by}) (rate({counter}{{{of}}}[$__rate_interval]))" if by else f"sum(rate({counter}{{{of}}}[$__rate_interval]))"


FLEET = [
    ("stat", "Pods that serve", "short", "Pods of which every check of ashlar_ready has passed and that do not drain.",
     {"": "sum((min by (namespace, pod) (ashlar_ready{MODELS}) == bool 1) * on (namespace, pod) (ashlar_draining{MODELS} == bool 0))"}),
    ("stat", "Pods that do not serve yet", "short", "Pods with a check of ashlar_ready that has not passed.",
     {"": "sum(min by (namespace, pod) (ashlar_ready{MODELS}) == bool 0)"}),
    ("stat", "Pods that drain", "short", "ashlar_draining.", {"": "sum(ashlar_draining{MODELS})"}),
    ("timeline", "Checks", "short", "ashlar_ready: the first that has not passed is what a model waits for.",
     {"{{job}} {{check}}": "min by (job, check) (ashlar_ready{MODELS})"}),
    ("table", "Failures since the pods started", "short", "ashlar_readiness_failures_total, with the reason of the condition.",
     {"": "sum by (job, check, reason) (ashlar_readiness_failures_total{MODELS})"}),
    ("table", "Models, platforms and backends", "short", "Pods by ashlar_attention_backend_info and ashlar_platform_info.",
     {"": "count by (job, model_name, group, kind, backend, platform, product) (ashlar_attention_backend_info{MODELS} "
          "* on (namespace, pod) group_left (platform, product) ashlar_platform_info{MODELS})"}),
    ("table", "Documents", "short", "Pods by ashlar_model_info: two digests of one model are a rollout in progress.",
     {"": "count by (job, model_name, model_digest, architecture, dtype) (ashlar_model_info{MODELS})"}),
    ("table", "Versions", "short", "Pods by ashlar_build_info.", {"": "count by (version, compiler) (ashlar_build_info{MODELS})"}),
    ("lines", "Answers", "reqps", "ashlar_http_requests_total of class 2xx.",
     {"{{job}}": 'sum by (job) (rate(ashlar_http_requests_total{MODELS, code="2xx"}[$__rate_interval]))'}),
    ("lines", "Errors", "reqps", "ashlar_http_requests_total of every other class; 499 are clients that left.",
     {"{{job}} {{code}}": 'sum by (job, code) (rate(ashlar_http_requests_total{MODELS, code!="2xx"}[$__rate_interval]))'}),
    ("lines", "Tokens generated per device", "short", "ashlar_generated_tokens_total over the devices that kube-state-metrics says the pods hold.",
     {"{{job}}": "sum by (job) (rate(ashlar_generated_tokens_total{MODELS}[$__rate_interval])) / sum by (job) (sum by (namespace, pod) ("
                 'kube_pod_container_resource_requests{container="ashlar", resource=~"(nvidia|amd)_com_.+"}) '
                 "* on (namespace, pod) group_right () ashlar_build_info{MODELS})"}),
    ("bars", "Phases of a start", "s", "ashlar_startup_phase_seconds of the slowest pod.",
     {"{{job}} {{phase}}": "max by (job, phase) (ashlar_startup_phase_seconds{MODELS})"}),
]

LATENCY = [
    ("lines", "Time to the first token", "s", "ashlar_time_to_first_token_seconds.", quantiles("ashlar_time_to_first_token_seconds")),
    ("lines", "Time between tokens", "s", "ashlar_inter_token_seconds.", quantiles("ashlar_inter_token_seconds")),
    ("lines", "Time to a whole answer", "s", "ashlar_request_duration_seconds.", quantiles("ashlar_request_duration_seconds", "route", (0.5, 0.95))),
    ("lines", "Queue", "short", "ashlar_requests_running and ashlar_requests_waiting.",
     {"running": "sum(ashlar_requests_running{MODELS})", "waiting": "sum(ashlar_requests_waiting{MODELS})"}),
    ("lines", "Prompt tokens in the queue", "short", "ashlar_waiting_tokens.", {"{{job}}": "sum by (job) (ashlar_waiting_tokens{MODELS})"}),
    ("lines", "Tokens a second", "short", "ashlar_prompt_tokens_total, ashlar_cached_prompt_tokens_total and ashlar_generated_tokens_total.",
     {"prompt": rate("ashlar_prompt_tokens_total"), "prompt, from the cache": rate("ashlar_cached_prompt_tokens_total"),
      "generated": rate("ashlar_generated_tokens_total")}),
    ("lines", "Answers by their end", "reqps", "ashlar_requests_finished_total.", {"{{reason}}": rate("ashlar_requests_finished_total", "reason")}),
    ("lines", "Preemptions", "reqps", "ashlar_preemptions_total: sequences sent back to the queue for want of blocks.",
     {"{{job}}": rate("ashlar_preemptions_total", "job")}),
    ("lines", "Engine steps a second", "short", "ashlar_engine_steps_total.", {"{{job}}": rate("ashlar_engine_steps_total", "job")}),
    ("lines", "Prompt length", "short", "ashlar_request_prompt_tokens.", quantiles("ashlar_request_prompt_tokens", values=(0.5, 0.95))),
    ("lines", "Answer length", "short", "ashlar_request_generated_tokens.", quantiles("ashlar_request_generated_tokens", values=(0.5, 0.95))),
    ("lines", "Connections", "short", "ashlar_http_connections_open.", {"{{job}}": "sum by (job) (ashlar_http_connections_open{MODELS})"}),
    ("lines", "Connections by outcome", "cps", "ashlar_http_connections_total.", {"{{result}}": rate("ashlar_http_connections_total", "result")}),
]

CACHE = [
    ("lines", "Blocks in use", "percentunit", "ashlar_kv_group_blocks_used over ashlar_kv_group_blocks, of the fullest pod.",
     {"{{job}} {{group}}": "max by (job, group, tier) (ashlar_kv_group_blocks_used{MODELS} / ashlar_kv_group_blocks{MODELS})"}),
    ("stack", "Blocks held and free", "short", "ashlar_kv_group_blocks_used and ashlar_kv_group_blocks_free.",
     {"{{group}} held": "sum by (group) (ashlar_kv_group_blocks_used{MODELS})",
      "{{group}} free": "sum by (group) (ashlar_kv_group_blocks_free{MODELS})"}),
    ("lines", "Blocks that a prefix finds", "short", "ashlar_kv_group_blocks_cached; those not held count as free too.",
     {"{{job}} {{group}}": "sum by (job, group) (ashlar_kv_group_blocks_cached{MODELS})"}),
    ("lines", "Prefix hits", "percentunit", "ashlar_kv_group_prefix_hits_total over ashlar_kv_group_prefix_queries_total: what each group could reuse by itself.",
     {"{{job}} {{group}}": f"{rate('ashlar_kv_group_prefix_hits_total', 'job, group')} / {rate('ashlar_kv_group_prefix_queries_total', 'job, group')}"}),
    ("lines", "Prompt tokens spared", "percentunit", "ashlar_cached_prompt_tokens_total over ashlar_prompt_tokens_total: what all groups share.",
     {"{{job}}": f"{rate('ashlar_cached_prompt_tokens_total', 'job')} / {rate('ashlar_prompt_tokens_total', 'job')}"}),
    ("lines", "Evictions", "ops", "ashlar_kv_group_evictions_total: cached blocks given up for new ones.",
     {"{{job}} {{group}}": rate("ashlar_kv_group_evictions_total", "job, group")}),
    ("bars", "Memory", "bytes", "ashlar_kv_group_bytes over all pods.", {"{{job}} {{group}} {{tier}}": "sum by (job, group, tier) (ashlar_kv_group_bytes{MODELS})"}),
    ("bars", "Blocks allocated of those planned", "percentunit",
     "ashlar_kv_group_blocks over ashlar_kv_group_blocks_planned, of the pod with the fewest: below 100 %, memory ran short before Ready.",
     {"{{job}} {{group}}": "min by (job, group) (ashlar_kv_group_blocks{MODELS} / ashlar_kv_group_blocks_planned{MODELS})"}),
    ("table", "Block sizes in tokens", "short", "ashlar_kv_group_block_tokens on its way from the request to the kernel; requested is 0 for auto.",
     {"": "max by (job, group, stage) (ashlar_kv_group_block_tokens{MODELS})"}),
    ("stat", "Unit of prefix reuse", "short", "ashlar_kv_hash_block_tokens, in tokens.", {"{{job}}": "max by (job) (ashlar_kv_hash_block_tokens{MODELS})"}),
    ("stat", "Unit in which blocks of all groups end", "short", "ashlar_kv_scheduler_block_tokens, in tokens.",
     {"{{job}}": "max by (job) (ashlar_kv_scheduler_block_tokens{MODELS})"}),
]

SELECTION = [
    ("table", "Chosen backends", "short", "Pods by ashlar_attention_backend_info: what each attention group runs, what was asked for and why it was chosen.",
     {"": "count by (job, model_name, group, attn, kind, backend, requested, reason, dtype, head_dim, block_size, kernel_block_size, layout) "
          "(ashlar_attention_backend_info{MODELS})"}),
    ("bars", "Backends per group", "short", "Different backends in ashlar_attention_backend_info for one group of a model: 1 is agreement.",
     {"{{job}} {{group}}.{{attn}}": "count by (job, group, attn) (count by (job, group, attn, backend) (ashlar_attention_backend_info{MODELS}))"}),
    ("bars", "Self-test error of what is tolerated", "percentunit",
     "ashlar_self_test_error_ratio over ashlar_self_test_tolerance_ratio, of the worst pod: above 100 % a model is not ready.",
     {"{{job}} {{group}} {{backend}}": "max by (job, group, attn, backend) (ashlar_self_test_error_ratio{MODELS} / ashlar_self_test_tolerance_ratio{MODELS})"}),
    ("table", "Refused candidates", "short", "Pods by ashlar_attention_backend_rejections.",
     {"": "count by (job, group, attn, backend, reason) (ashlar_attention_backend_rejections{MODELS})"}),
    ("table", "Platforms", "short", "Pods by ashlar_platform_info.", {"": "count by (job, platform, name, product) (ashlar_platform_info{MODELS})"}),
]

OPERATOR = [
    ("stat", "Models accepted", "short", "ashlar_hook_models, of the replica of the hooks that sees most of them.",
     {"": 'max(ashlar_hook_models{HOOKS, condition="Accepted", status="True"})'}),
    ("stat", "Models refused", "short", "ashlar_hook_models: Accepted is false and says why.",
     {"": 'max(ashlar_hook_models{HOOKS, condition="Accepted", status="False"})'}),
    ("stat", "Models ready", "short", "ashlar_hook_models.", {"": 'max(ashlar_hook_models{HOOKS, condition="Ready", status="True"})'}),
    ("stat", "Since pods were last asked", "s", "ashlar_hook_last_poll_timestamp_seconds, of the replica that lags most.",
     {"": "max(time() - ashlar_hook_last_poll_timestamp_seconds{HOOKS})"}),
    ("table", "Models by condition", "short", "ashlar_hook_models, of the replica that sees most of them.",
     {"": "max by (condition, status) (ashlar_hook_models{HOOKS})"}),
    ("lines", "Answers to Metacontroller", "reqps", "ashlar_hook_requests_total; 429 asks for a little time, 400 is a body that is no request.",
     {"{{hook}} {{code}}": rate("ashlar_hook_requests_total", "hook, code", "HOOKS")}),
    ("lines", "Time of an answer", "s", "ashlar_hook_request_duration_seconds.",
     quantiles("ashlar_hook_request_duration_seconds", "hook", (0.5, 0.99), "HOOKS")),
    ("lines", "Verdicts that were known", "percentunit", "ashlar_hook_plan_cache_lookups_total; the others were planned.",
     {"": 'sum(rate(ashlar_hook_plan_cache_lookups_total{HOOKS, result="hit"}[$__rate_interval])) / '
          + rate("ashlar_hook_plan_cache_lookups_total", of="HOOKS")}),
    ("lines", "Pods asked", "ops", "ashlar_hook_pod_polls_total by what came of it.", {"{{result}}": rate("ashlar_hook_pod_polls_total", "result", "HOOKS")}),
    ("table", "Versions", "short", "Pods by ashlar_hook_build_info.", {"": "count by (version, compiler) (ashlar_hook_build_info{HOOKS})"}),
]

# file and uid -> title and panels
DASHBOARDS = {
    "ashlar-fleet": ("Ashlar: fleet", FLEET),
    "ashlar-latency": ("Ashlar: latency", LATENCY),
    "ashlar-cache": ("Ashlar: KV cache", CACHE),
    "ashlar-selection": ("Ashlar: backend selection", SELECTION),
    "ashlar-operator": ("Ashlar: operator", OPERATOR),
}

# kind -> Grafana's type, width of 24, height
KINDS = {"stat": ("stat", 4, 6), "lines": ("timeseries", 12, 8), "stack": ("timeseries", 12, 8), "bars": ("bargauge", 12, 8),
         "timeline": ("state-timeline", 12, 8), "table": ("table", 24, 8)}


def options(kind):
    reduce = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    return {
        "stat": {"reduceOptions": reduce, "graphMode": "none", "colorMode": "none"},
        "bars": {"reduceOptions": reduce, "displayMode": "basic", "orientation": "horizontal"},
        "timeline": {"mergeValues": True, "showValue": "never"},
        "table": {"showHeader": True},
    }.get(kind, {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "multi", "sort": "desc"}})


def target(kind, letter, legend, expression):
    result = {"refId": letter, "datasource": SOURCE, "expr": expression.replace("MODELS", MODELS).replace("HOOKS", HOOKS), "legendFormat": legend or "__auto"}
    now = kind in ("table", "bars", "stat")
    return {**result, "instant": now, "range": not now, **({"format": "table"} if kind == "table" else {})}


def panel(number, kind, title, unit, description, queries, place):
    defaults = {"unit": unit, "noValue": "no data", "mappings": PASSED if kind == "timeline" else NO_TRAFFIC}
    if kind in ("lines", "stack"):
        defaults["min"] = 0
        defaults["custom"] = {"fillOpacity": 10, "stacking": {"mode": "normal" if kind == "stack" else "none", "group": "A"}}
    result = {
        "id": number, "type": KINDS[kind][0], "title": title, "description": description, "datasource": SOURCE, "gridPos": place,
        "targets": [target(kind, chr(ord("A") + i), *query) for i, query in enumerate(queries.items())],
        "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options(kind),
    }
    if kind == "table":
        result["transformations"] = [{"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": {"Value": "count"}}}]
    return result


def variable(name, label, source):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE,
            "query": {"query": source, "refId": "variable"}, "refresh": 2, "sort": 1, "multi": True, "includeAll": True, "allValue": ".*",
            "current": {"text": "All", "value": "$__all"}}


def variables(panels):
    if panels is OPERATOR:
        return [variable("hooks", "Hooks", "label_values(ashlar_hook_build_info, job)")]
    return [variable("namespace", "Namespace", "label_values(ashlar_build_info, namespace)"),
            variable("job", "Model", 'label_values(ashlar_build_info{namespace=~"$namespace"}, job)')]


def dashboard(uid, title, panels):
    laid, x, y, row = [], 0, 0, 0
    for number, (kind, name, unit, description, queries) in enumerate(panels, 1):
        _, width, height = KINDS[kind]
        if x + width > 24:
            x, y, row = 0, y + row, 0
        laid.append(panel(number, kind, name, unit, description, queries, {"x": x, "y": y, "w": width, "h": height}))
        x, row = x + width, max(row, height)
    return {
        "id": None, "uid": uid, "title": title, "tags": ["ashlar"], "schemaVersion": 39, "version": 1, "editable": True, "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"}, "timezone": "",
        "links": [{"type": "dashboards", "title": "Ashlar", "tags": ["ashlar"], "asDropdown": True, "keepTime": True, "includeVars": True}],
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}},
            *variables(panels),
        ]},
        "panels": laid,
    }


if __name__ == "__main__":
    for uid, (title, panels) in DASHBOARDS.items():
        with open(os.path.join(sys.argv[1], f"{uid}.json"), "w") as file:
            json.dump(dashboard(uid, title, panels), file, indent=1)
            file.write("\n")
