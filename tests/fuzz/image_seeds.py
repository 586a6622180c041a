"""Seeds of the image target: the small files of fixtures/image."""
import os
import shutil
import sys

FILES = os.path.join(os.path.dirname(__file__), "..", "..", "fixtures", "image", "files")

for name in sorted(os.listdir(FILES)):
    if os.path.getsize(os.path.join(FILES, name)) < 8192:
        shutil.copy(os.path.join(FILES, name), os.path.join(sys.argv[1], name))
