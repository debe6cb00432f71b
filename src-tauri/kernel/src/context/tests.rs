//! The ledger of what waiting generations hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use super::*;
use crate::executor::TokioExecutor;

fn contexts(limit_bytes: u64) -> Arc<Contexts> {
    let snapshots = Arc::<MemorySnapshots>::default();
    let contexts = Contexts::new(snapshots, Arc::new(TokioExecutor));
    contexts.set_limit(limit_bytes);
    contexts
}

fn told(places: &[Place]) -> Vec<bool> {
    places.iter().map(|p| p.spill.is_cancelled()).collect()
}

#[test]
fn the_one_that_waited_longest_goes_first() {
    let contexts = contexts(100);
    let mut places: Vec<_> = [40, 30, 30].map(|bytes| contexts.enlist(bytes)).into();
    assert_eq!(told(&places), [false; 3]);
    places.push(contexts.enlist(30));
    assert_eq!(told(&places), [true, false, false, false]);
    assert_eq!(contexts.load().resident_bytes, 90);
    // One that ends makes room; one that was told to go counts no more.
    drop(places.remove(1));
    drop(places.remove(0));
    assert_eq!(contexts.load().resident_bytes, 60);
    places.push(contexts.enlist(40));
    assert_eq!(told(&places), [false; 3]);
    contexts.set_limit(69);
    assert_eq!(told(&places), [true, true, false]);
    drop(places);
    let load = contexts.load();
    assert_eq!(
        (load.resident, load.resident_bytes, load.switches),
        (0, 0, 5)
    );
}

#[test]
fn one_that_is_larger_than_the_limit_goes_alone() {
    let contexts = contexts(100);
    let places = [contexts.enlist(60), contexts.enlist(200)];
    assert_eq!(told(&places), [true, true]);
    assert_eq!(contexts.load().resident, 0);
}
