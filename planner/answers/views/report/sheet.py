"""Colours and sizes of the report: a palette that is told apart with few colours, and by hatches."""

from __future__ import annotations

LIGHT = {
    "ink": "#1b1d21", "paper": "#ffffff", "soft": "#5a6068", "line": "#d7dade", "idle": "#eceef0",
    "c0": "#0072b2", "c1": "#d55e00", "c2": "#009e73", "c3": "#cc79a7", "c4": "#b58900", "c5": "#56b4e9",
    "c6": "#6f4e9c", "c7": "#7f8790",
}  # fmt: skip
DARK = {
    "ink": "#e8e9eb", "paper": "#15171b", "soft": "#a4abb3", "line": "#363b42", "idle": "#23272d",
    "c0": "#4aa8e0", "c1": "#ff9150", "c2": "#3fc79d", "c3": "#e29bc5", "c4": "#e0b93f", "c5": "#8fcdf2",
    "c6": "#b29ad6", "c7": "#9aa2ab",
}  # fmt: skip
COLOURS = 8
_RULES = """
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
       max-width: 72rem; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.2rem; }
.said, footer, caption { color: var(--soft); } footer { margin: 3rem 0 1rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); gap: .6rem 1.5rem; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; margin: .6rem 0; }
caption { text-align: left; padding: .2rem 0; }
th, td { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: .8rem 0; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 11px system-ui, sans-serif; } svg .soft { fill: var(--soft); }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; font-size: .85rem; }
ul.legend svg { display: inline-block; width: .9rem; vertical-align: -.1rem; margin-right: .35rem; }
code { overflow-wrap: anywhere; }
@media print { body { margin: 0; } .wide { overflow: visible; } }
"""


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


SHEET = (
    f":root {{ color-scheme: light dark; {_variables(LIGHT)} }}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}{_RULES}"
)
