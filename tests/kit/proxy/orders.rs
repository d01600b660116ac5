//! What the test wants to happen, and what has happened.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::sftp_server::Gate;
use crate::wait;

/// On which side of the statement's commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The request is kept from the server: nothing of it is committed.
    Before,
    /// The server has answered, so it has committed; the client has seen none of the answer.
    After,
}

/// What is done at a statement.
#[derive(Debug, Clone)]
pub struct Fault {
    pub(super) moment: Moment,
    cut: bool,
    refuse: bool,
    gate: Option<Gate>,
}

impl Fault {
    /// The connection ends.
    pub const fn cut(moment: Moment) -> Self {
        Self { moment, cut: true, refuse: false, gate: None }
    }

    /// It waits until the gate is opened, and goes on as if nothing had been.
    pub const fn hold(moment: Moment, gate: Gate) -> Self {
        Self { moment, cut: false, refuse: false, gate: Some(gate) }
    }

    /// It waits until the gate is opened, and then the connection ends.
    #[must_use]
    pub fn held_by(self, gate: &Gate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }

    /// From then on every new connection is refused too.
    #[must_use]
    pub fn then_refusing(self) -> Self {
        Self { refuse: true, ..self }
    }
}

/// Tells whether an ordered fault has happened.
#[derive(Debug, Clone)]
pub struct Struck(watch::Receiver<bool>);

impl Struck {
    /// Until it has happened: for a held one, until its gate was opened.
    pub async fn happened(&self) -> anyhow::Result<()> {
        tokio::time::timeout(wait::BOUND, self.0.clone().wait_for(|struck| *struck)).await??;
        Ok(())
    }

    pub fn has_happened(&self) -> bool {
        *self.0.borrow()
    }
}

/// A fault that waits for its statement.
#[derive(Debug)]
pub struct Order {
    statement: String,
    left: usize,
    pub fault: Fault,
    struck: watch::Sender<bool>,
}

/// The orders of one line.
#[derive(Debug, Default)]
pub struct Orders {
    open: Mutex<Vec<Order>>,
    executed: Mutex<Vec<String>>,
    refusing: AtomicBool,
}

impl Orders {
    pub fn add(&self, statement: &str, nth: usize, fault: Fault) -> Struck {
        let (struck, receiver) = watch::channel(false);
        lock(&self.open).push(Order { statement: statement.to_owned(), left: nth.max(1), fault, struck });
        Struck(receiver)
    }

    /// The order for one of these statements, which are about to be executed together.
    pub fn take(&self, statements: &[String]) -> Option<Order> {
        lock(&self.executed).extend_from_slice(statements);
        let mut open = lock(&self.open);
        let mut due = None;
        for statement in statements {
            for (index, order) in open.iter_mut().enumerate().filter(|(_, order)| order.statement == *statement) {
                order.left = order.left.saturating_sub(1);
                if order.left == 0 {
                    due = due.or(Some(index));
                }
            }
        }
        due.map(|index| open.remove(index))
    }

    pub fn executed(&self) -> Vec<String> {
        lock(&self.executed).clone()
    }

    pub fn refuse(&self, refuse: bool) {
        self.refusing.store(refuse, Ordering::SeqCst);
    }

    pub fn refuses(&self) -> bool {
        self.refusing.load(Ordering::SeqCst)
    }

    /// Does what was ordered; true if the connection is to end.
    pub async fn obey(&self, order: &Order) -> bool {
        if let Some(gate) = &order.fault.gate {
            gate.pass().await;
        }
        // Before the client can notice, so that its next connection is refused already.
        if order.fault.refuse {
            self.refuse(true);
        }
        order.struck.send_replace(true);
        order.fault.cut
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shared by the two directions of a connection: what is under way at the server, in order.
pub type UnderWay = Arc<Mutex<std::collections::VecDeque<Option<Order>>>>;

/// Adds what the server is about to answer.
pub fn sent(under_way: &UnderWay, order: Option<Order>) {
    lock(under_way).push_back(order);
}

/// True if the answer that comes next is to be withheld.
pub fn withholds(under_way: &UnderWay) -> bool {
    lock(under_way).front().is_some_and(Option::is_some)
}

/// What the server has answered in full.
pub fn answered(under_way: &UnderWay) -> Option<Order> {
    lock(under_way).pop_front().flatten()
}
