"""Plain data as YAML that every reader takes alike: blocks, with all texts quoted as in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def yaml_of(data: Mapping[str, Any]) -> str:
    """Nested data as YAML.

    >>> print(yaml_of({"tier": 2, "names": ["no", "a: b"], "empty": {}}), end="")
    tier: 2
    names:
      - "no"
      - "a: b"
    empty: {}
    """
    return "".join(f"{line}\n" for line in _mapping(data, ""))


def _mapping(data: Mapping[str, Any], indent: str) -> list[str]:
    lines = []
    for name, value in data.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{indent}{name}:", *_mapping(value, f"{indent}  ")]
        elif isinstance(value, list | tuple) and value:
            lines.append(f"{indent}{name}:")
            for one in value:
                if isinstance(one, Mapping):
                    first, *rest = _mapping(one, f"{indent}    ")
                    lines += [f"{indent}  - {first.lstrip()}", *rest]
                else:
                    lines.append(f"{indent}  - {_scalar(one)}")
        else:
            lines.append(f"{indent}{name}: {_scalar(value)}")
    return lines


def _scalar(value: Any) -> str:
    # YAML 1.1 reads 1e-09 as a text: a number needs a point before its exponent.
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")
    # JSON writes a character beyond 16 bits as two, which YAML takes for two.
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in text)
