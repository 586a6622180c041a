"""peak.py COMMAND...: runs it, its stdout dropped, and prints the most memory it
had resident, in bytes, or "small" when that was no more than this script itself
has (a new process is counted from its parent's); its status is the command's.
"""
import os
import resource
import subprocess
import sys

child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
_, status, usage = os.wait4(child.pid, 0)
print("small" if usage.ru_maxrss <= own + 1024 else usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))
