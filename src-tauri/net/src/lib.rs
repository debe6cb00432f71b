//! The only way out to the network: model downloads that resume and are verified.
