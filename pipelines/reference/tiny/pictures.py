"""The fixture's images, drawn: flat shapes (RGB, no resize), a receipt in grey
and a chart that both need resizing, and a scene with texture as a JPEG."""

import numpy as np
from PIL import Image, ImageDraw


def shapes():
    image = Image.new("RGB", (160, 128), (245, 240, 228))
    draw = ImageDraw.Draw(image)
    draw.ellipse((12, 14, 66, 68), fill=(206, 38, 44))
    draw.rectangle((84, 22, 144, 66), fill=(32, 76, 178))
    draw.polygon([(24, 118), (58, 78), (92, 118)], fill=(38, 146, 74), outline=(0, 0, 0))
    draw.line((100, 84, 150, 120), fill=(230, 170, 20), width=7)
    return image


def receipt():
    image = Image.new("L", (100, 222), 250)
    draw = ImageDraw.Draw(image)
    draw.text((22, 6), "CORNER SHOP", fill=10)
    lines = [("Bread", "2.40"), ("Milk", "1.15"), ("Apples", "3.20"),
             ("Cheese", "5.75"), ("Tea", "4.10"), ("Tax", "1.16")]
    for i, (name, price) in enumerate(lines):
        draw.text((8, 34 + 22 * i), name, fill=40)
        draw.text((66, 34 + 22 * i), price, fill=40)
    draw.line((6, 172, 94, 172), fill=0, width=2)
    draw.text((8, 182), "TOTAL", fill=0)
    draw.text((64, 182), "17.76", fill=0)
    return image


def chart():
    image = Image.new("RGB", (267, 133), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    draw.text((86, 2), "Visits by site", fill=(20, 20, 20))
    for i in range(5):
        y = 112 - 22 * i
        draw.line((32, y, 258, y), fill=(200, 200, 205))
        draw.text((10, y - 6), str(12 * i), fill=(60, 60, 60))
    bars = [("north", 42, (44, 110, 180)), ("south", 31, (214, 120, 40)),
            ("east", 27, (80, 150, 70)), ("west", 20, (150, 70, 140))]
    for i, (name, count, colour) in enumerate(bars):
        x = 46 + 54 * i
        draw.rectangle((x, 112 - int(1.83 * count), x + 34, 112), fill=colour)
        draw.text((x + 2, 117), name, fill=(20, 20, 20))
    return image


def photograph():
    """A lake at evening: gradients, hills, reflections and grain."""
    rng = np.random.default_rng(5)
    height, width = 136, 200
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    sky = np.stack([230 - 0.6 * y, 150 + 0.5 * y, 110 + 0.9 * y], -1)
    sun = np.exp(-((x - 140) ** 2 + (y - 48) ** 2) / 260)
    scene = sky + sun[..., None] * np.array([90, 80, 30])
    ridge = 66 - 9 * np.sin(x / 23) - 6 * np.sin(x / 9 + 1)
    scene[y > ridge] = (62, 70, 84)
    shore = y > 80
    wave = np.sin(y * 1.7 + 3 * np.sin(x / 17)) * 14
    water = np.stack([150 - 0.5 * y, 110 - 0.1 * y, 100 + 0.2 * y], -1)
    water += (wave * (1 + 2 * np.exp(-((x - 140) / 18) ** 2)))[..., None]
    scene[shore] = water[shore]
    scene += rng.normal(0, 5, (height, width, 1)) + rng.normal(0, 2, (height, width, 3))
    return Image.fromarray(np.clip(scene, 0, 255).astype(np.uint8))


def write(folder):
    shapes().save(folder / "shapes.png")
    receipt().save(folder / "receipt.png")
    chart().save(folder / "chart.png")
    photograph().save(folder / "photograph.jpg", quality=85)
