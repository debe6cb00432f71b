//! Bringing a window to the front, on the monitor where the person is. Main thread only.

use gtk::Window;
use gtk::gdk;
use gtk::prelude::*;

/// The part of a monitor that windows may use, in logical pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    /// Left edge.
    pub(crate) x: i32,
    /// Upper edge.
    pub(crate) y: i32,
    /// Width.
    pub(crate) width: i32,
    /// Height.
    pub(crate) height: i32,
}

/// The monitor with the pointer, or the first one.
pub(crate) fn area() -> Option<Area> {
    let display = gdk::Display::default()?;
    let pointer = display.default_seat().and_then(|seat| seat.pointer());
    let monitor = pointer
        .map(|pointer| pointer.position())
        .and_then(|(_, x, y)| display.monitor_at_point(x, y))
        .or_else(|| display.primary_monitor())
        .or_else(|| display.monitor(0))?;
    let area = monitor.workarea();
    Some(Area {
        x: area.x(),
        y: area.y(),
        width: area.width(),
        height: area.height(),
    })
}

/// Shows a window in front of all others and gives it the keyboard.
pub(crate) fn show(window: &impl IsA<Window>) {
    let window: &Window = window.upcast_ref();
    window.realize();
    let surface = window
        .window()
        .and_then(|it| it.downcast::<gdkx11::X11Window>().ok());
    // Window managers keep a window behind that was last used before the one in front. The hotkey
    // is heard outside of GTK, which therefore does not know that the person just acted.
    let now = surface
        .as_ref()
        .map_or(gdk::ffi::GDK_CURRENT_TIME as u32, |surface| {
            let now = gdkx11::functions::x11_get_server_time(surface);
            surface.set_user_time(now);
            now
        });
    window.show_all();
    window.present_with_time(now);
}
