"""Seeds of the jpeg target."""
import sys

import image_seeds

image_seeds.copy(".jpg", sys.argv[1])
