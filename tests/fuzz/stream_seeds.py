"""Seeds for stream_fuzz.c: python3 stream_seeds.py DIR"""
import os
import sys

TEXTS = [b'{"a": [1, -2.5e+3, "x"], "b" : null, "c": {"d": true, "e": false}}', b'"\\u00e9\\ud83d\\ude00\\n\\/"',
         "[\"\u2581\u00e9\U0001F600\", {\"\u00e9\": \"\"}]".encode(), b"\n\n        [\n          7,\t0]", b"[" * 64 + b"]" * 64,
         b'{"a": 1, "\\u0061": 2}', b"[9223372036854775807, 1e308]", b"\xef\xbb\xbf{}", b'{"k": ' * 30 + b"0" + b"}" * 30]
for i, text in enumerate(TEXTS):
    for window in (0, 1, 7, 15, 255):
        with open(os.path.join(sys.argv[1], f"{i}-{window}"), "wb") as f:
            f.write(bytes([window]) + text)
