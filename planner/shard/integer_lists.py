"""Reads lists of lists of integers fast, straight from JSON's bytes into one flat array.

``[[1, 2], [3]]`` becomes the numbers 1 2 3 and the lengths 2 1.  Anything else (fractions, NaN, strings, deeper lists,
more than 63 bits) gives None, and the caller asks a slower reader for the words of the error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solver.arrays import Ints
from solver.selection.kernel import BYTES, INT, INTS, kernel

COMMA, MINUS, ZERO, NINE, OPEN, CLOSE = 44, 45, 48, 57, 91, 93
BETWEEN, EXPECT_LIST, IN_LIST, EXPECT_NUMBER, AFTER_NUMBER, END = 0, 1, 2, 3, 4, 5


@kernel(INT(BYTES, INTS, INTS))
def scan_lists(text: Any, numbers: Ints, lengths: Ints) -> int:  # noqa: PLR0912
    """Fill numbers and lengths; the count of lists, or -1 where the text is anything else.

    States: after the outer bracket EXPECT_LIST; inside [ IN_LIST; after a comma EXPECT_NUMBER; after a number
    AFTER_NUMBER; after an inner bracket closed BETWEEN; after the outer one END.
    """
    i, size, state, count, lists = 0, text.size, -1, 0, 0
    first = True
    while i < size:
        byte = text[i]
        if byte in (9, 10, 13, 32):
            i += 1
        elif state == -1:
            if byte != OPEN:
                return -1
            state, i = EXPECT_LIST, i + 1
        elif state == EXPECT_LIST:
            if byte == OPEN:
                lengths[lists], state, i, first = 0, IN_LIST, i + 1, False
            elif byte == CLOSE and first:
                state, i = END, i + 1
            else:
                return -1
        elif state in (IN_LIST, EXPECT_NUMBER):
            if byte == CLOSE and state == IN_LIST:
                lists, state, i = lists + 1, BETWEEN, i + 1
                continue
            negative = byte == MINUS
            if negative:
                i += 1
            begin, value = i, np.int64(0)
            while i < size and ZERO <= text[i] <= NINE:
                value = value * 10 + np.int64(text[i] - ZERO)
                i += 1
            digits = i - begin
            # 10^18, which marks what is forbidden, has 19 digits; 19 digits that begin with 1 fit in 64 bits.
            fitting = 0 < digits <= 18 or (digits == 19 and text[begin] == ZERO + 1)
            if not fitting or (text[begin] == ZERO and digits > 1):
                return -1
            numbers[count] = -value if negative else value
            count += 1
            lengths[lists] += 1
            state = AFTER_NUMBER
        elif state == AFTER_NUMBER:
            if byte == COMMA:
                state, i = EXPECT_NUMBER, i + 1
            elif byte == CLOSE:
                lists, state, i = lists + 1, BETWEEN, i + 1
            else:
                return -1
        elif state == BETWEEN:
            if byte == COMMA:
                state, i = EXPECT_LIST, i + 1
            elif byte == CLOSE:
                state, i = END, i + 1
            else:
                return -1
        else:
            return -1
    return lists if state == END else -1


def integer_lists(raw: Any) -> tuple[Ints, Ints] | None:
    """The numbers, list after list, and the length of each list; None where it is not a list of lists of integers."""
    text = np.frombuffer(raw, np.uint8)
    numbers = np.zeros(int(np.count_nonzero(text == COMMA)) + 1, np.int64)
    lengths = np.zeros(int(np.count_nonzero(text == OPEN)) + 1, np.int64)
    lists = scan_lists(text, numbers, lengths)
    if lists < 0:
        return None
    lengths = lengths[:lists].copy()
    return numbers[: int(lengths.sum())].copy(), lengths
