//! What tasks, their plan, their run and the leases on them say of each other.

use onceseal_core::lease::{LeaseRow, Resource};
use onceseal_core::stream::Tenant;
use onceseal_core::task::{PlanRow, TaskRow, TaskState};
use onceseal_store::StoreError;

use super::{Judge, Named, code};
use onceseal_core::journal::Row;
use onceseal_core::stream::StreamId;

impl Judge<'_> {
    pub(super) fn lease(&mut self, tenant: &Tenant, row: &LeaseRow) {
        let Some(resource) = &row.private.resource else { return };
        let interrupts = Resource::parse(resource).and_then(|resource| resource.interrupts(tenant));
        if tenant.lease(resource) != self.stream || interrupts != row.interrupts {
            self.misnamed("its resource");
        }
    }

    pub(super) fn plan(&mut self, tenant: &Tenant, row: &PlanRow) -> Result<(), StoreError> {
        if tenant.plan(row.run) != self.stream {
            self.misnamed("its run");
        }
        if matches!(self.run_row(row.run)?, Named::Absent) {
            self.find(code::TASK_DIFFERS, "is of a run that is not there");
        }
        Ok(())
    }

    /// A task is in its run's plan; whoever works on it has it under a lease; it
    /// waits for others exactly as long as one of them is not verified.
    pub(super) fn task(&mut self, tenant: &Tenant, row: &TaskRow) -> Result<(), StoreError> {
        let id = row.private.id.as_ref();
        if id.is_some_and(|id| tenant.task(row.run, id) != self.stream) {
            self.misnamed("its id");
        }
        let is_planned = match self.plan_row(tenant.plan(row.run))? {
            Named::Is(plan) => row.state == TaskState::Closed || row.number < plan.tasks,
            Named::Absent => false,
            Named::Unreadable => true,
        };
        if !is_planned {
            self.find(code::TASK_DIFFERS, "is not in the plan of its run");
        }
        if let (true, Some(id)) = (row.state.is_worked_on(), id) {
            let resource = Resource::Task(row.run, id.clone()).to_string();
            let is_held = match self.lease_row(tenant.lease(&resource))? {
                Named::Is(lease) => !lease.holders.is_empty(),
                Named::Absent => false,
                Named::Unreadable => true,
            };
            if !is_held {
                self.find(code::TASK_DIFFERS, "is worked on, and nobody has it");
            }
        }
        let mut waits = false;
        for on in &row.depends_on {
            match self.task_row(*on)? {
                Named::Is(on) => waits |= on.state != TaskState::Verified,
                Named::Absent => waits = true,
                Named::Unreadable => return Ok(()),
            }
        }
        if row.state != TaskState::Closed && waits != (row.state == TaskState::Pending) {
            self.find(code::TASK_DIFFERS, "waits for others otherwise than they stand");
        }
        Ok(())
    }

    fn plan_row(&self, stream: StreamId) -> Result<Named<PlanRow>, StoreError> {
        self.row(stream, |row| if let Row::Plan(row) = row { Some(row) } else { None })
    }

    fn task_row(&self, stream: StreamId) -> Result<Named<TaskRow>, StoreError> {
        self.row(stream, |row| if let Row::Task(row) = row { Some(row) } else { None })
    }

    fn lease_row(&self, stream: StreamId) -> Result<Named<LeaseRow>, StoreError> {
        self.row(stream, |row| if let Row::Lease(row) = row { Some(row) } else { None })
    }
}
