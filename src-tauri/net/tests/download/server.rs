//! A small HTTP server on this computer: a package index with one wheel, and ways to misbehave.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// How the server gives the wheel out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manner {
    /// Answers ranges with the whole.
    pub(crate) ignores_ranges: bool,
    /// Breaks so many connections off, each after so many bytes of body.
    pub(crate) cuts: (u32, usize),
    /// Answers the wheel's address with another status.
    pub(crate) wheel_status: Option<u16>,
    /// Answers the index page's address with another status.
    pub(crate) index_status: Option<u16>,
    /// Redirects the wheel's address to this one.
    pub(crate) redirect: Option<String>,
    /// Sends for ever, without a length.
    pub(crate) endless: bool,
    /// Leaves the size out of the index.
    pub(crate) tells_no_size: bool,
    /// Leaves the digest out of the index.
    pub(crate) tells_no_digest: bool,
    /// Adds to the size that the index tells.
    pub(crate) tells_more: u64,
    /// What the index page is instead.
    pub(crate) page: Option<&'static str>,
}

/// A request: its path, and its `Range` header.
pub(crate) type Seen = (String, Option<String>);

pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    manner: Manner,
    wheel: Vec<u8>,
    digest: String,
    cuts_left: AtomicU32,
    seen: Mutex<Vec<Seen>>,
    stop: AtomicBool,
}

impl Server {
    pub(crate) fn start(wheel: Vec<u8>, digest: String, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            cuts_left: AtomicU32::new(manner.cuts.0),
            manner,
            wheel,
            digest,
            seen: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let for_thread = shared.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if for_thread.stop.load(Ordering::Relaxed) {
                    return;
                }
                // A client that went away is no fault of the server.
                let _ = for_thread.answer(&stream.unwrap());
            }
        });
        Self {
            address,
            shared,
            thread: Some(thread),
        }
    }

    pub(crate) fn index(&self) -> String {
        format!("http://{}/simple", self.address)
    }

    /// The `Range` headers of the requests for the wheel, in order.
    pub(crate) fn ranges(&self) -> Vec<Option<String>> {
        let seen = self.shared.seen.lock().unwrap();
        seen.iter()
            .filter(|(path, _)| path.ends_with(".whl"))
            .map(|(_, range)| range.clone())
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn answer(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next().unwrap_or(Ok(String::new()))?;
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut range = None;
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("range")
            {
                range = Some(value.trim().to_owned());
            }
        }
        self.seen
            .lock()
            .unwrap()
            .push((path.clone(), range.clone()));
        if path.ends_with(".whl") {
            self.answer_wheel(stream, &path, range)
        } else {
            self.answer_index(stream)
        }
    }

    fn answer_index(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let manner = &self.manner;
        let status = manner.index_status.unwrap_or(200);
        let size = match manner.tells_no_size {
            true => String::new(),
            false => format!(
                r#", "size": {}"#,
                self.wheel.len() as u64 + manner.tells_more
            ),
        };
        let digest = match manner.tells_no_digest {
            true => String::new(),
            false => format!(r#""sha256": "{}""#, self.digest),
        };
        let page = format!(
            r#"{{"files": [{{"filename": "a_model-1.0-py3-none-any.whl", "url": "../../f/a.whl",
                "hashes": {{{digest}}}{size}}}]}}"#
        );
        let page = manner.page.unwrap_or(&page);
        write!(
            stream,
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
            page.len()
        )
    }

    fn answer_wheel(
        &self,
        mut stream: &TcpStream,
        path: &str,
        range: Option<String>,
    ) -> std::io::Result<()> {
        let manner = &self.manner;
        if let Some(status) = manner.wheel_status {
            return write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        if let (Some(to), "/f/a.whl") = (&manner.redirect, path) {
            return write!(
                stream,
                "HTTP/1.1 302 X\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        if manner.endless {
            write!(stream, "HTTP/1.1 200 X\r\nConnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[0; 65536])?;
            }
        }
        let all = self.wheel.len();
        let from = range.filter(|_| !manner.ignores_ranges).map(|range| {
            range
                .strip_prefix("bytes=")
                .unwrap()
                .strip_suffix('-')
                .unwrap()
                .parse::<usize>()
                .unwrap()
        });
        let head = match from {
            Some(from) if from >= all => {
                return write!(
                    stream,
                    "HTTP/1.1 416 X\r\nContent-Range: bytes */{all}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
            }
            Some(from) => format!("206 X\r\nContent-Range: bytes {from}-{}/{all}", all - 1),
            None => "200 X".to_owned(),
        };
        let body = &self.wheel[from.unwrap_or(0)..];
        write!(
            stream,
            "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        )?;
        let cut = |left: u32| left.checked_sub(1);
        if self
            .cuts_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, cut)
            .is_ok()
        {
            stream.write_all(&body[..manner.cuts.1.min(body.len())])?;
            return stream.shutdown(Shutdown::Both);
        }
        stream.write_all(body)
    }
}
