"""The small images of fixtures/image with one ending, into a folder: what
png_seeds.py, jpeg_seeds.py and webp_seeds.py share."""
import os
import shutil

FILES = os.path.join(os.path.dirname(__file__), "..", "..", "fixtures", "image", "files")


def copy(ending, folder):
    for name in sorted(os.listdir(FILES)):
        if name.endswith(ending) and os.path.getsize(os.path.join(FILES, name)) < 8192:
            shutil.copy(os.path.join(FILES, name), os.path.join(folder, name))
