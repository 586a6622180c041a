"""Seeds of the webp target."""
import sys

import image_seeds

image_seeds.copy(".webp", sys.argv[1])
