//! Waiting for an answer that may hand out an attempt or a lease, so that none is
//! lost when the wait is given up.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use onceseal_core::code::Code;
use onceseal_core::reply::Reply;
use onceseal_store::{StoreError, Ticket};

use crate::keeper::Keeper;

/// An answer being waited for. Dropped before it is there, the command is
/// withdrawn, or what its answer hands out is settled as not executed or given back.
pub(crate) struct Unclaimed<'a> {
    keeper: &'a Keeper,
    ticket: Option<Ticket>,
    patience: Pin<Box<tokio::time::Sleep>>,
    patient: bool,
}

impl<'a> Unclaimed<'a> {
    pub(crate) fn new(keeper: &'a Keeper, ticket: Ticket) -> Unclaimed<'a> {
        let patience = tokio::time::sleep_until(ticket.patience_ends().into());
        Unclaimed { keeper, ticket: Some(ticket), patience: Box::pin(patience), patient: true }
    }
}

impl Future for Unclaimed<'_> {
    type Output = Result<Reply, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(ticket) = &mut this.ticket else { return Poll::Ready(Err(StoreError::new(Code::Internal))) };
        if let Poll::Ready(outcome) = Pin::new(&mut *ticket).poll(context) {
            this.ticket = None;
            return Poll::Ready(outcome);
        }
        if this.patient && this.patience.as_mut().poll(context).is_ready() {
            this.patient = false;
            if ticket.withdraw() {
                this.ticket = None;
                return Poll::Ready(Err(StoreError::new(Code::StoreBusy)));
            }
        }
        Poll::Pending
    }
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        // Not begun: nothing will come of it.
        if let Some(ticket) = self.ticket.take().filter(|ticket| !ticket.withdraw()) {
            self.keeper.adopt(ticket);
        }
    }
}
