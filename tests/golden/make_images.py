"""make_images.py FOLDER - small pictures of each format, and what TensorFlow makes of them.

Needs tensorflow. For each case: NAME (the encoded bytes) and NAME.npy (what decoding gives); resize_*.npy and
augment_*.npy: what tf.image.resize and Keras's layers give for picture_*.npy."""
import os, struct, sys, zlib
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
HEIGHT, WIDTH = 29, 37


def picture(channels, seed=1, height=HEIGHT, width=WIDTH):
    """Slopes, a disc and some noise: edges and flat parts."""
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.RandomState(seed).randint(0, 40, (height, width, channels))
    disc = ((y - height / 2) ** 2 + (x - width / 3) ** 2 < (height / 3) ** 2)[..., None] * 90
    slope = np.stack([(x * (3 + c) + y * (5 - c)) % 200 for c in range(channels)], -1)
    return np.clip(noise + disc + slope * 0.6, 0, 255).astype(np.uint8)


def save(name, array):
    np.save(os.path.join(FOLDER, name + ".npy"), np.asarray(array))


def case(name, data, decode, **arguments):
    """NAME is written once; NAME.VARIANT.npy for each way to decode it."""
    with open(os.path.join(FOLDER, name.split("@")[0]), "wb") as f:
        f.write(data)
    save(name, decode(data, **arguments).numpy())


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rows, width, height, depth, kind, extra=b"", interlaced=0):
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"tEXt", b"Comment\0of a test") +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def interlace(pixels):
    """Adam7: seven small pictures, each row with filter 0."""
    out = b""
    for y0, x0, dy, dx in [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]:
        for row in pixels[y0::dy, x0::dx]:
            out += b"\0" + row.tobytes() if len(row) else b""
    return out


def bmp(pixels, top_down=False):
    height, width, channels = pixels.shape
    order = [0] if channels == 1 else [2, 1, 0, 3][:channels]
    rows = pixels[..., order] if top_down else pixels[::-1][..., order]
    body = b"".join(row.tobytes() + b"\0" * (-row.size % 4) for row in rows)
    palette = b"".join(bytes([i, i, i, 0]) for i in range(256)) if channels == 1 else b""
    offset = 54 + len(palette)
    head = b"BM" + struct.pack("<IHHI", offset + len(body), 0, 0, offset)
    head += struct.pack("<IiiHHIIiiII", 40, width, -height if top_down else height, 1, 8 * channels, 0, len(body), 0, 0, 0, 0)
    return head + palette + body


def lzw(indices, bits):
    """GIF's packing: codes of growing width, in blocks of at most 255 bytes."""
    clear, out, held, count = 1 << bits, bytearray(), 0, 0

    def put(code, width):
        nonlocal held, count
        held |= code << count
        count += width
        while count >= 8:
            out.append(held & 255)
            held >>= 8
            count -= 8

    table, width, next_code, string = {(i,): i for i in range(clear)}, bits + 1, clear + 2, ()
    put(clear, width)
    for index in indices:
        if string + (index,) in table:
            string += (index,)
            continue
        put(table[string], width)
        if next_code < 4096:
            table[string + (index,)] = next_code
            if next_code == 1 << width and width < 12:
                width += 1
            next_code += 1
        else:
            put(clear, width)
            table, width, next_code = {(i,): i for i in range(clear)}, bits + 1, clear + 2
        string = (index,)
    put(table[string], width)
    put(clear + 1, width)
    if count:
        out.append(held & 255)
    return bytes([bits]) + b"".join(bytes([len(out[i:i + 255])]) + bytes(out[i:i + 255]) for i in range(0, len(out), 255)) + b"\0"


def gif(indices, bits, interlaced=False, transparent=None, left=0, top=0, canvas=None, frames=1):
    height, width = indices.shape
    screen = canvas or (height, width)
    colors = np.random.RandomState(3).randint(0, 256, (1 << bits, 3)).astype(np.uint8).tobytes()
    out = b"GIF89a" + struct.pack("<HHBBB", screen[1], screen[0], 0x80 | (bits - 1), 0, 0) + colors
    order = [y for a, b in [(0, 8), (4, 8), (2, 4), (1, 2)] for y in range(a, height, b)] if interlaced else range(height)
    for _ in range(frames):
        if transparent is not None:
            out += bytes([0x21, 0xF9, 4, 1, 0, 0, transparent, 0])
        out += b"\x21\xfe\x05hello\0"
        out += b"," + struct.pack("<HHHHB", left, top, width, height, 0x40 if interlaced else 0)
        out += lzw([int(v) for y in order for v in indices[y]], max(bits, 2))
    return out + b";"


def jpegs():
    decode, three, one = tf.io.decode_jpeg, picture(3), picture(1)
    plain = tf.io.encode_jpeg(three, quality=90).numpy()
    case("color.jpg", plain, decode)
    case("color.jpg@gray", plain, decode, channels=1)
    case("color.jpg@accurate", plain, decode, dct_method="INTEGER_ACCURATE")
    case("color.jpg@plain", plain, decode, fancy_upscaling=False)
    for ratio in (2, 4, 8):
        case(f"color.jpg@ratio{ratio}", plain, decode, ratio=ratio)
    case("whole.jpg", tf.io.encode_jpeg(three, quality=30, chroma_downsampling=False).numpy(), decode)
    case("progressive.jpg", tf.io.encode_jpeg(three, progressive=True, optimize_size=True).numpy(), decode)
    case("gray.jpg", tf.io.encode_jpeg(one).numpy(), decode)
    case("gray.jpg@color", tf.io.encode_jpeg(one).numpy(), decode, channels=3)
    case("small.jpg", tf.io.encode_jpeg(picture(3, height=9, width=11), quality=20).numpy(), decode)
    # Four components: the file of a gray picture says so itself, with every component the same.
    gray = tf.io.encode_jpeg(one, format="grayscale").numpy()
    case("cmyk.jpg", cmyk(gray), decode)
    case("cmyk_adobe.jpg", cmyk(gray, adobe=2), decode)
    case("cmyk_adobe.jpg@color", cmyk(gray, adobe=2), decode, channels=3)


def cmyk(gray, adobe=None):
    """Four scans of one component each, all with the data of a gray picture."""
    out, at = gray[:2], 2
    if adobe is not None:
        out += b"\xff\xee" + struct.pack(">H5sHHHB", 14, b"Adobe", 100, 0, 0, adobe)
    while True:
        kind, length = gray[at + 1], struct.unpack(">H", gray[at + 2:at + 4])[0]
        segment = gray[at:at + 2 + length]
        at += 2 + length
        if kind == 0xC0:
            segment = b"\xff\xc0" + struct.pack(">H", 8 + 12) + segment[4:9] + b"\4" + b"".join(bytes([c, 0x11, 0]) for c in range(1, 5))
        if kind == 0xE0:
            continue
        if kind == 0xDA:
            data = gray[at:-2]
            return out + b"".join(b"\xff\xda\0\x08\1" + bytes([c, 0, 0, 63, 0]) + data for c in range(1, 5)) + b"\xff\xd9"
        out += segment


def pngs():
    decode, rng = tf.io.decode_png, np.random.RandomState(5)
    for channels in (1, 2, 3, 4):
        data = tf.io.encode_png(picture(channels)).numpy()
        for want in (0, 1, 3, 4):
            case(f"channels{channels}.png@{want}", data, decode, channels=want)
    deep = tf.io.encode_png(rng.randint(0, 65536, (HEIGHT, WIDTH, 3)).astype(np.uint16)).numpy()
    case("deep.png", deep, decode)
    case("deep.png@4", deep, decode, channels=4)
    indices = rng.randint(0, 16, (9, 11))
    packed = b"".join(b"\0" + bytes((int(a) << 4) | int(b) for a, b in zip(list(row[0::2]), list(row[1::2]) + [0])) for row in indices)
    palette = chunk(b"PLTE", rng.randint(0, 256, 48).astype(np.uint8).tobytes())
    for name, extra in (("palette.png", palette), ("transparent.png", palette + chunk(b"tRNS", bytes([0, 128, 7])))):
        for want in (0, 3, 4, 1):
            case(f"{name}@{want}", png(packed, 11, 9, 4, 3, extra), decode, channels=want)
    bits = b"".join(b"\0" + rng.randint(0, 256, 2).astype(np.uint8).tobytes() for _ in range(9))
    case("bits.png", png(bits, 11, 9, 1, 0), decode)
    case("gray_transparent.png@4", png(bits, 11, 9, 1, 0, chunk(b"tRNS", b"\0\1")), decode, channels=4)
    three = picture(3)
    case("interlaced.png", png(interlace(three), WIDTH, HEIGHT, 8, 2, interlaced=1), decode)
    gamma = png(b"".join(b"\0" + row.tobytes() for row in three), WIDTH, HEIGHT, 8, 2, chunk(b"gAMA", struct.pack(">I", 45455)))
    case("gamma.png@1", gamma, decode, channels=1)
    case("gamma.png@3", gamma, decode, channels=3)


def others():
    first = lambda data: tf.io.decode_image(data, expand_animations=False)
    for channels in (1, 3, 4):
        case(f"c{channels}.bmp", bmp(picture(channels)), tf.io.decode_bmp)
    case("top_down.bmp", bmp(picture(3), True), tf.io.decode_bmp)
    case("small.bmp", bmp(picture(3, height=5, width=4)), tf.io.decode_bmp)
    indices = np.random.RandomState(7).randint(0, 16, (HEIGHT, WIDTH))
    case("plain.gif", gif(indices, 4), first)
    case("frames.gif", gif(indices, 4, frames=2), first)
    case("interlaced.gif", gif(indices, 4, interlaced=True), first)
    case("transparent.gif", gif(indices, 4, transparent=5), first)
    case("part.gif", gif(indices[:10, :12], 4, left=3, top=5, canvas=(HEIGHT, WIDTH)), first)
    case("long.gif", gif(np.random.RandomState(8).randint(0, 256, (80, 90)), 8), first)


def resizes():
    byte, real = picture(3), (picture(2, 4).astype(np.float32) - 100) / 7
    save("picture_u8", byte)
    save("picture_f32", real)
    for method in ("bilinear", "nearest", "bicubic", "area"):
        for antialias in (False, True):
            for height, width in ((13, 50), (64, 17), (5, 4)):
                for name, image in (("u8", byte), ("f32", real)):
                    small = name == "u8" or (height, width) == (13, 50)
                    if small and not (antialias and method in ("nearest", "area")):
                        save(f"resize_{name}_{method}_{int(antialias)}_{height}x{width}",
                             tf.image.resize(image, (height, width), method, antialias=antialias).numpy())
    for height, width in ((13, 50), (40, 20), (10, 11)):
        save(f"crop_or_pad_{height}x{width}", tf.image.resize_with_crop_or_pad(byte, height, width).numpy())


def augments():
    real = picture(3).astype(np.float32)
    size = dict(height=HEIGHT, width=WIDTH)
    layer = keras.layers.RandomRotation(0.5)
    turn = layer._compute_affine_matrix(0.5, 0.5, tf.constant([0.07 * 360], tf.float32), *[np.zeros(1, np.float32)] * 2,
                                        np.ones(1, np.float32), *[np.zeros(1, np.float32)] * 2, **size)
    zoom = keras.layers.RandomZoom(0.5)._get_zoom_matrix(tf.constant([[1 + 0.3, 1 - 0.2]], tf.float32), HEIGHT, WIDTH)
    shift = keras.layers.RandomTranslation(0.5, 0.5)._get_translation_matrix(tf.constant([[-0.4 * WIDTH, 1.3 * HEIGHT]], tf.float32))
    for name, matrix in (("rotation", turn), ("zoom", zoom), ("translation", shift)):
        for fill in ("reflect", "wrap", "constant", "nearest"):
            for interpolation in ("bilinear", "nearest"):
                if interpolation == "bilinear" or name == "rotation":
                    save(f"augment_{name}_{fill}_{interpolation}",
                         keras.ops.image.affine_transform(real, matrix[0], interpolation, fill, 7.0).numpy())
    save("augment_contrast", keras.layers.RandomContrast(0.5).transform_images(real, {"contrast_factor": 1.4}).numpy())
    save("augment_brightness", keras.layers.RandomBrightness(0.5).transform_images(real, {"rgb_delta": np.float32(-0.3) * 255}).numpy())
    save("augment_standard", tf.image.per_image_standardization(real).numpy())
    save("augment_normal", keras.layers.Normalization(mean=[100, 110, 120], variance=[900, 0, 16])(real).numpy())


os.makedirs(FOLDER, exist_ok=True)
jpegs()
pngs()
others()
resizes()
augments()
