"""The runtime of an SDK that was installed as Python packages: finds, preloads, expands and tests it.

It is vendored into the selector under the SDK's own name (``rocm_sdk``), so it imports nothing but the standard library
and itself, relatively, and knows no SDK: names come from ``_sdk.json`` beside it and in the platform folders.
"""
