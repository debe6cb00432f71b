//! HTTP, with the rules for where it may lead.

use std::time::Duration;

use ureq::http::{Response, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};
use url::{Host, Url};

use crate::error::Error;

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 5;
const CONNECT: Duration = Duration::from_secs(20);
const READ: Duration = Duration::from_secs(30);
/// Until the headers are there.
const ANSWER: Duration = Duration::from_secs(60);

/// A client that begins at one address and may go where that one permits.
pub(crate) struct Client {
    agent: Agent,
    base: Url,
    token: Option<String>,
    plain_on_this_computer: bool,
}

/// Why nothing came.
pub(crate) enum Failed {
    /// Nobody answered, or not to the end.
    Offline(String),
    /// Anything else.
    Error(Error),
}

impl Client {
    /// For what begins at `base`: HTTPS, or HTTP to this computer itself.
    pub(crate) fn new(base: &Url) -> Result<Self, Error> {
        let plain_on_this_computer = base.scheme() == "http" && is_this_computer(base);
        if base.scheme() != "https" && !plain_on_this_computer {
            return Err(refused(base, "it is not https"));
        }
        // The system's own certificates, so that SSL_CERT_FILE and a company's own roots count.
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let mut config = Agent::config_builder()
            .tls_config(tls)
            .user_agent(concat!("steward/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(ANSWER))
            .timeout_per_read(Some(READ));
        if plain_on_this_computer {
            config = config.proxy(None);
        }
        Ok(Self {
            agent: config.build().new_agent(),
            base: base.clone(),
            token: None,
            plain_on_this_computer,
        })
    }

    /// With a token that goes to where the client begins, and not along with a redirect.
    pub(crate) fn with_token(self, token: Option<&str>) -> Self {
        Self {
            token: token.map(str::to_owned),
            ..self
        }
    }

    /// GETs `url`, from byte `from` on where that is not 0, following redirects.
    pub(crate) fn get(&self, url: &Url, accept: &str, from: u64) -> Result<Response<Body>, Failed> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.check(&url).map_err(Failed::Error)?;
            let mut request = self.agent.get(url.as_str()).header(header::ACCEPT, accept);
            if from > 0 {
                request = request.header(header::RANGE, format!("bytes={from}-"));
            }
            if let Some(token) = self
                .token
                .as_ref()
                .filter(|_| url.origin() == self.base.origin())
            {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            let response = request.call().map_err(|e| Failed::Offline(why(&e)))?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let to = response
                .headers()
                .get(header::LOCATION)
                .and_then(|to| to.to_str().ok());
            url = to.and_then(|to| url.join(to).ok()).ok_or_else(|| {
                Failed::Error(Error::Answer {
                    url: shown(&url),
                    answer: "a redirect to nowhere".to_owned(),
                })
            })?;
        }
        Err(Failed::Error(Error::Answer {
            url: shown(&url),
            answer: format!("more than {MAX_REDIRECTS} redirects"),
        }))
    }

    fn check(&self, url: &Url) -> Result<(), Error> {
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.plain_on_this_computer && is_this_computer(url) => Ok(()),
            _ => Err(refused(url, "it is not https")),
        }
    }
}

/// An answer that is not the one asked for.
pub(crate) fn unexpected(url: &Url, response: &Response<Body>) -> Error {
    Error::Answer {
        url: shown(url),
        answer: format!("the status {}", response.status()),
    }
}

/// An address without its credentials.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

fn why(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Rustls(error) => format!(
            "{error}; where the certificates are the fault, install `ca-certificates` or set SSL_CERT_FILE"
        ),
        error => error.to_string(),
    }
}

fn refused(url: &Url, why: &str) -> Error {
    Error::Address {
        url: shown(url),
        why: why.to_owned(),
    }
}

fn is_this_computer(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}
