"""Seeds of the png target."""
import sys

import image_seeds

image_seeds.copy(".png", sys.argv[1])
