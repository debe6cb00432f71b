//! The only way out to the network: model downloads that resume and are verified.
//!
//! [`Catalogue`] says which models there are, [`Download`] fetches one, [`Hub`] any that Hugging Face
//! has; [`locate`] and [`verify`] look at one that is there, [`Shelves`] finds those that other
//! programs fetched, [`models_dir`] says where ours are. Connections are by HTTPS; plain
//! HTTP is accepted from this computer only, where the index itself was named so.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the room that connects outwards; the files it opens are models, not a person's"
)]

mod catalogue;
mod download;
mod error;
mod found;
mod http;
mod hub;
mod index;
mod models;
mod transfer;
mod wheel;

pub use catalogue::{Catalogue, CatalogueError, Model, Source};
pub use download::{Download, Progress};
pub use error::Error;
pub use found::{Found, Keeper, Shelves};
pub use hub::{Hub, HubRef, Origin};
pub use models::{locate, models_dir, verify};
