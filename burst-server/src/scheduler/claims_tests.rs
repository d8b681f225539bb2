use super::*;

const A: Claimant = Claimant { user: 1, connection: 1, priority: Priority::Medium };
const B: Claimant = Claimant { user: 2, connection: 2, priority: Priority::Medium };

fn of(user: u32, connection: u64) -> Claimant {
    Claimant { user, connection, priority: Priority::Medium }
}

fn at(of: Claimant, priority: Priority) -> Claimant {
    Claimant { priority, ..of }
}

#[test]
fn the_most_urgent_run_of_a_user_comes_first_and_gains_nothing_over_other_users() {
    let mut claims = Claims::new();
    let (low, high) = (at(A, Priority::Low), at(A, Priority::High));
    for (of, run) in [(low, 0), (A, 1), (high, 2), (low, 3), (high, 4), (B, 10), (B, 11)] {
        claims.join(of, run);
    }
    let mut served = Vec::new();
    while let Some(run) = claims.next() {
        claims.charge(if run < 10 { A } else { B }, 10);
        served.push(run);
    }
    assert_eq!(served, [2, 10, 4, 11, 1, 0, 3], "users in turns; within a user by priority");
}

#[test]
fn a_run_gives_way_at_once_to_a_more_urgent_one_of_its_user_and_never_to_a_less_urgent_one() {
    let mut claims = Claims::new();
    let (low, high) = (at(A, Priority::Low), at(of(A.user, 9), Priority::High));
    claims.join(high, 1);
    assert!(claims.is_due(low, 0) && claims.is_due(A, 0));
    assert!(!claims.is_due(at(B, Priority::Low), 0), "another user's priority is its own affair");
    assert_eq!(claims.next(), Some(1));
    claims.join(low, 2);
    assert!(!claims.is_due(high, u64::MAX) && !claims.is_due(A, u64::MAX));
    assert!(claims.is_due(low, QUANTUM_NS), "among equals as ever");
}

#[test]
fn a_connection_is_served_in_the_order_of_arrival() {
    let mut claims = Claims::new();
    (0..5).for_each(|run| claims.join(A, run));
    assert!(claims.leave(A, &2) && !claims.leave(A, &2) && !claims.leave(B, &0));
    let served: Vec<_> = std::iter::from_fn(|| claims.next()).collect();
    assert_eq!((served, claims.waiting()), (vec![0, 1, 3, 4], 0));
}

#[test]
fn users_are_served_before_connections_and_these_before_runs() {
    let mut claims = Claims::new();
    for (user, connection) in [(1, 1), (1, 1), (1, 1), (1, 2), (1, 2), (2, 3)] {
        claims.join(of(user, connection), (user, connection));
    }
    let mut served = Vec::new();
    while let Some((user, connection)) = claims.next() {
        claims.charge(of(user, connection), 10);
        served.push((user, connection));
    }
    assert_eq!(served, [(1, 1), (2, 3), (1, 2), (1, 1), (1, 2), (1, 1)]);
}

#[test]
fn a_run_is_due_a_quantum_ahead_of_whoever_waits() {
    let mut claims = Claims::new();
    assert!(!claims.is_due(A, u64::MAX), "nobody waits");
    claims.join(A, 1);
    assert!(
        !claims.is_due(A, QUANTUM_NS - 1) && claims.is_due(A, QUANTUM_NS),
        "its own connection"
    );
    let other = of(A.user, 9);
    assert!(!claims.is_due(other, u64::MAX), "the other connection has computed as much");
    claims.charge(other, QUANTUM_NS);
    assert!(claims.is_due(other, 0));
    assert!(!claims.is_due(B, u64::MAX), "this user has computed less");
    claims.charge(B, 2 * QUANTUM_NS);
    assert!(claims.is_due(B, 0));
}

#[test]
fn neither_debt_nor_credit_piles_up() {
    let mut claims = Claims::new();
    for _ in 0..100 {
        claims.join(A, 1);
        claims.charge(A, QUANTUM_NS);
        claims.next();
    }
    // B comes back after all that: it is served first, and ahead of A after two quanta.
    claims.join(A, 1);
    claims.join(B, 2);
    claims.charge(B, QUANTUM_NS - 1);
    assert_eq!(claims.next(), Some(2));
    claims.charge(B, 2 * QUANTUM_NS + 1);
    assert!(claims.is_due(B, 0));
    assert_eq!(claims.next(), Some(1));
    claims.forget();
    assert!(claims.users.members.is_empty());
}

#[test]
fn who_is_gone_is_not_remembered() {
    let mut claims = Claims::new();
    for user in 0..1000 {
        claims.join(of(user, user.into()), user);
        claims.charge(of(user, user.into()), QUANTUM_NS);
        claims.join(A, 0);
        claims.charge(A, 4 * QUANTUM_NS);
        while claims.next().is_some() {}
    }
    assert!(claims.users.members.len() <= 3, "{}", claims.users.members.len());
}
