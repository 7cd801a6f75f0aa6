"""The numeric kernels: compiled by default, their NumPy twins with `ENGRAM_NATIVE=0`.

Nothing here knows the rest of the library. A kernel takes and gives NumPy arrays, checks them at
the boundary and then works without the GIL. There is no silent fallback: a build without the
extensions fails on import, and the twins are used only where somebody asked for them.
"""

from __future__ import annotations

import os
from typing import Final

__all__ = [
    "NATIVE",
    "blend",
    "bm25",
    "check_pages",
    "check_rows",
    "coarse_nearest",
    "code_candidates",
    "decay",
    "decode",
    "encode",
    "find_terms",
    "hamming_nearest",
    "invert",
    "merge",
    "page_sums",
    "query_codes",
    "read_rows",
    "row_frequencies",
    "sign_bits",
    "spread",
    "top_k",
]

NATIVE: Final[bool] = os.environ.get("ENGRAM_NATIVE") != "0"
"""Whether the compiled kernels are selected."""

if NATIVE:
    try:
        from engram._native.blend import blend
        from engram._native.decay import decay
        from engram._native.hamming import hamming_nearest, sign_bits
        from engram._native.pages import check_pages, check_rows, page_sums, read_rows
        from engram._native.postings import bm25, find_terms, row_frequencies
        from engram._native.scan import top_k
        from engram._native.sketch import (
            coarse_nearest,
            code_candidates,
            decode,
            encode,
            query_codes,
        )
        from engram._native.spreading import spread
        from engram._native.tokens import invert, merge
    except ImportError as error:
        _message = (
            "the compiled kernels of engram cannot be loaded; rebuild them with"
            " `pip install --force-reinstall --no-deps .`, or set ENGRAM_NATIVE=0 to use the slower"
            " NumPy twins"
        )
        raise ImportError(_message, name=error.name, path=error.path) from error
else:
    from engram._native.twins.blend import blend
    from engram._native.twins.decay import decay
    from engram._native.twins.hamming import hamming_nearest, sign_bits
    from engram._native.twins.pages import check_pages, check_rows, page_sums, read_rows
    from engram._native.twins.postings import bm25, find_terms, row_frequencies
    from engram._native.twins.scan import top_k
    from engram._native.twins.sketch import (
        coarse_nearest,
        code_candidates,
        decode,
        encode,
        query_codes,
    )
    from engram._native.twins.spreading import spread
    from engram._native.twins.tokens import invert, merge
