//! What a process passes on: never looser than what it holds.

use super::decide::is_tighter;
use super::{Capability, CapabilityId, Constraints, Grant, Now, Right, Stance, Status};
use crate::error::{Code, SysError};

/// Grants passed on by one call at most.
const GRANTS_MOST: usize = 64;

/// Makes of what a process holds and what it wants to pass on the grants that the receiver gets,
/// each with the capability it is derived from, so that taking that one back takes it back too.
///
/// Every wanted right comes from one capability that covers all of the wish; what the wish leaves
/// open (constraints, uses, lease) it has from there. Denies that lie over a wish go with it. Where
/// a part of a wish would have to be asked about, all of it is. What cannot be proven to be
/// narrower is refused.
///
/// # Errors
/// [`Code::Denied`] where the process does not hold it, [`Code::Invalid`] for a wish that says
/// nothing.
pub fn narrow(
    held: &[Capability],
    wanted: &[Grant],
    now: &Now,
) -> Result<Vec<(Grant, CapabilityId)>, SysError> {
    if wanted.len() > GRANTS_MOST {
        let message = format!(
            "`{}` grants are wanted, `{GRANTS_MOST}` is the most",
            wanted.len()
        );
        return Err(SysError::new(Code::Limit, message).hint("pass on fewer"));
    }
    let active: Vec<&Capability> = held
        .iter()
        .filter(|c| c.status == Status::Active && !c.is_over(now))
        .collect();
    let mut given: Vec<(Grant, CapabilityId)> = Vec::new();
    for want in wanted {
        if want.rights.is_empty() {
            return Err(SysError::new(Code::Invalid, "a grant names no right")
                .hint("name at least one right"));
        }
        if want.uses == Some(0) || want.lease_ms == Some(0) {
            return Err(
                SysError::new(Code::Invalid, "a grant is for no use or no time")
                    .hint("leave the number out, or give one above zero"),
            );
        }
        let first = given.len();
        for right in &want.rights {
            let (grant, from) = one(&active, want, *right, now)?;
            // Rights that come from one capability stay one grant.
            let same = |(other, by): &&mut (Grant, CapabilityId)| {
                let rights = other.rights.clone();
                *by == from
                    && *other
                        == Grant {
                            rights,
                            ..grant.clone()
                        }
            };
            match given[first..].iter_mut().find(same) {
                Some((grant, _)) => grant.rights.push(*right),
                None => given.push((grant, from)),
            }
        }
    }
    let denies = active.iter().filter(|c| c.grant.stance == Stance::Deny);
    for deny in denies {
        let lies_over = |(grant, _): &(Grant, CapabilityId)| {
            grant.stance != Stance::Deny
                && grant
                    .rights
                    .iter()
                    .any(|right| overlaps(deny, grant, *right))
        };
        if given.iter().any(lies_over) && !given.iter().any(|(_, from)| *from == deny.id) {
            given.push((deny.grant.clone(), deny.id));
        }
    }
    Ok(given)
}

/// One wanted right.
fn one(
    active: &[&Capability],
    want: &Grant,
    right: Right,
    now: &Now,
) -> Result<(Grant, CapabilityId), SysError> {
    let over = || active.iter().filter(|c| overlaps(c, want, right));
    let denies = |c: &&&Capability| {
        let grant = &c.grant;
        let all = grant.resource.covers(&want.resource) && grant.has(right);
        grant.stance == Stance::Deny && all && want.constraints.within(&grant.constraints)
    };
    if let Some(deny) = over().find(denies) {
        return Err(refused(
            want,
            right,
            &format!("capability {} denies it", deny.id),
        ));
    }
    let mut best: Option<(Grant, CapabilityId)> = None;
    let mut why = "the process holds no capability for it".to_owned();
    for from in over().filter(|c| c.grant.stance != Stance::Deny) {
        match derived(from, want, right, now) {
            Err(reason) => why = format!("capability {} {reason}", from.id),
            Ok(mut grant) => {
                // An allow is passed on only where every ask over the wish is looser than it.
                let asked = over().any(|c| {
                    c.grant.stance == Stance::Ask
                        && !is_tighter(&from.grant.constraints, &c.grant.constraints)
                });
                if asked && grant.stance == Stance::Allow {
                    grant.stance = Stance::Ask;
                }
                let better = best
                    .as_ref()
                    .is_none_or(|(so_far, _)| rank(grant.stance) < rank(so_far.stance));
                if better {
                    best = Some((grant, from.id));
                }
            }
        }
    }
    best.ok_or_else(|| refused(want, right, &why))
}

/// A wanted right out of one capability, or why not.
fn derived(
    from: &Capability,
    want: &Grant,
    right: Right,
    now: &Now,
) -> Result<Grant, &'static str> {
    let grant = &from.grant;
    if !grant.resource.covers(&want.resource) {
        return Err("covers a part of it only");
    }
    if !grant.has(right) {
        return Err("gives other rights");
    }
    if grant.depth == Some(0) {
        return Err("may not be passed on");
    }
    let constraints: Constraints = want.constraints.clone().or(&grant.constraints);
    if !constraints.within(&grant.constraints) {
        return Err("is bound more tightly");
    }
    let left = from.lease.as_ref().map(|lease| lease.left_ms(&now.steady));
    Ok(Grant {
        resource: want.resource.clone(),
        rights: vec![right],
        stance: match (want.stance, grant.stance) {
            (Stance::Allow, held) => held,
            (want, _) => want,
        },
        uses: fewest(want.uses, grant.uses),
        constraints,
        lease_ms: fewest(want.lease_ms, left),
        depth: fewest(want.depth, grant.depth.map(|depth| depth - 1)),
    })
}

fn overlaps(capability: &Capability, want: &Grant, right: Right) -> bool {
    let grant = &capability.grant;
    grant.resource.overlaps(&want.resource) && grant.rights.iter().any(|r| r.overlaps(right))
}

fn fewest<T: Ord>(want: Option<T>, held: Option<T>) -> Option<T> {
    match (want, held) {
        (Some(want), Some(held)) => Some(want.min(held)),
        (want, held) => want.or(held),
    }
}

fn rank(stance: Stance) -> u8 {
    match stance {
        Stance::Allow => 0,
        Stance::Ask => 1,
        Stance::Deny => 2,
    }
}

fn refused(want: &Grant, right: Right, why: &str) -> SysError {
    let message = format!("{right} {} cannot be passed on: {why}", want.resource);
    SysError::new(Code::Denied, message).hint("pass on what is held, or less of it")
}
