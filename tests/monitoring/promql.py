"""What a PromQL expression names. Its syntax is left to promtool."""
import re

WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
GROUPING = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)")


def names(expression):
    """({metric: labels that are matched}, labels that are grouped or joined by)"""
    text = re.sub(r'"(\\.|[^"\\])*"', '""', expression)
    text = re.sub(r"\[[^\]]*\]", "", text)
    grouped = {label for _, inside in GROUPING.findall(text) for label in re.findall(r"\w+", inside)}
    text = GROUPING.sub("", text)
    metrics = {}
    for match in re.finditer(r"([a-zA-Z_:][\w:]*)\s*(?:(\()|\{([^}]*)\})?", text):
        name, call, inside = match.groups()
        if call or name in WORDS:
            continue
        metrics.setdefault(name, set()).update(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", inside or ""))
    return metrics, grouped
