"""A hand on the X server itself: keys taken and pressed, and the screen read, without another program."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_ubyte, c_uint, c_ulong, c_void_p

SHIFT, CONTROL = 1, 4
NUM_LOCK, CAPS_LOCK = 16, 2
ASYNC = 1
ALL_PLANES = (1 << 64) - 1
Z_PIXMAP = 2


class _Image(Structure):
    """The head of an XImage, as far as it is read here."""

    _fields_ = [
        ("width", c_int), ("height", c_int), ("xoffset", c_int), ("format", c_int), ("data", c_void_p),
        ("byte_order", c_int), ("bitmap_unit", c_int), ("bitmap_bit_order", c_int), ("bitmap_pad", c_int),
        ("depth", c_int), ("bytes_per_line", c_int),
    ]


class _Error(Structure):
    """The X server's refusal of a request."""

    _fields_ = [
        ("type", c_int), ("display", c_void_p), ("resourceid", c_ulong), ("serial", c_ulong),
        ("error_code", c_ubyte), ("request_code", c_ubyte), ("minor_code", c_ubyte),
    ]


_x = ctypes.CDLL("libX11.so.6")
_x.XOpenDisplay.argtypes, _x.XOpenDisplay.restype = [c_char_p], c_void_p
_x.XCloseDisplay.argtypes = [c_void_p]
_x.XDefaultRootWindow.argtypes, _x.XDefaultRootWindow.restype = [c_void_p], c_ulong
_x.XKeysymToKeycode.argtypes, _x.XKeysymToKeycode.restype = [c_void_p, c_ulong], c_int
_x.XStringToKeysym.argtypes, _x.XStringToKeysym.restype = [c_char_p], c_ulong
_x.XGrabKey.argtypes = [c_void_p, c_int, c_uint, c_ulong, c_int, c_int, c_int]
_x.XSync.argtypes = [c_void_p, c_int]
_x.XGetImage.argtypes = [c_void_p, c_ulong, c_int, c_int, c_uint, c_uint, c_ulong, c_int]
_x.XGetImage.restype = POINTER(_Image)
_x.XDestroyImage.argtypes = [POINTER(_Image)]


@ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_Error))
def _note_error(_display: int, error: object) -> int:
    _errors.append(error.contents.error_code)
    return 0


_errors: list[int] = []
_x.XSetErrorHandler(_note_error)


class Server:
    """A connection to the X server, until `close`."""

    def __init__(self, display: str):
        self._display = _x.XOpenDisplay(display.encode())
        if not self._display:
            raise OSError(f"the display `{display}` does not answer")
        self._root = _x.XDefaultRootWindow(self._display)

    def close(self) -> None:
        """Gives back what was taken."""
        _x.XCloseDisplay(self._display)

    def take(self, key: str, modifiers: int) -> None:
        """Takes a hotkey, as another program would; fails where one has it."""
        _errors.clear()
        for locks in (0, NUM_LOCK, CAPS_LOCK, NUM_LOCK | CAPS_LOCK):
            _x.XGrabKey(self._display, self._code(key), modifiers | locks, self._root, 0, ASYNC, ASYNC)
        _x.XSync(self._display, 0)
        if _errors:
            raise OSError(f"the key `{key}` with modifiers {modifiers} is taken by another program")

    def press(self, *keys: str) -> None:
        """Presses keys in this order and lets go of them in the other."""
        test = ctypes.CDLL("libXtst.so.6")
        test.XTestFakeKeyEvent.argtypes = [c_void_p, c_uint, c_int, c_ulong]
        codes = [self._code(key) for key in keys]
        for code in codes:
            test.XTestFakeKeyEvent(self._display, code, 1, 0)
        for code in reversed(codes):
            test.XTestFakeKeyEvent(self._display, code, 0, 0)
        _x.XSync(self._display, 0)

    def pixels(self, x: int, y: int, width: int, height: int) -> bytes:
        """A part of the screen as it is seen now."""
        image = _x.XGetImage(self._display, self._root, x, y, width, height, ALL_PLANES, Z_PIXMAP)
        if not image:
            raise OSError("the screen could not be read")
        try:
            return ctypes.string_at(image.contents.data, image.contents.bytes_per_line * height)
        finally:
            _x.XDestroyImage(image)

    def _code(self, key: str) -> int:
        return _x.XKeysymToKeycode(self._display, _x.XStringToKeysym(key.encode()))
