#!/bin/sh
# The fallback of the http hooks: keeps the call on disk while no collector runs. Says nothing, never fails.
for python in "${COWPATH_PYTHON:-}" python3 python; do
    if [ -n "$python" ] && "$python" -c 'import cowpath.hook' 2>/dev/null; then
        "$python" -m cowpath.hook claude-code 2>/dev/null
        exit 0
    fi
done
exit 0
