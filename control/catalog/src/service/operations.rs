//! The operations that products, Thngs, places, collections and batches have in common.

/// `read`, `list`, `update` and `delete` of a kind. `$reads` reads it: `named`, or `with_properties`.
macro_rules! operations {
    ($resource:ident, $change:ident, $reads:ident) => {
        /// Reads one by id or `<key>:<value>`.
        ///
        /// # Errors
        /// It does not exist or the identifier is ambiguous.
        #[instrument(skip_all)]
        pub async fn read(core: &Core, actor: &Actor, reference: &str) -> Result<$resource, ServiceError> {
            $reads::read(core, actor, reference).await
        }

        /// Lists them.
        ///
        /// # Errors
        /// The key lacks the permission.
        #[instrument(skip_all)]
        pub async fn list(
            core: &Core,
            actor: &Actor,
            request: &ListRequest,
        ) -> Result<Page<$resource>, ServiceError> {
            $reads::list(core, actor, request).await
        }

        /// Merges the members given into one.
        ///
        /// # Errors
        /// It does not exist, the identifier is ambiguous, or `Bulk::update_in` of the kind refuses the change.
        #[instrument(skip_all)]
        pub async fn update(
            core: &Core,
            caller: &Caller,
            reference: &str,
            change: $change,
        ) -> Result<$resource, ServiceError> {
            bulk::update_one(core, caller, reference, change).await
        }

        /// Removes one, with what `Bulk::delete_in` of the kind removes; what points at it stays.
        ///
        /// # Errors
        /// It does not exist or the identifier is ambiguous.
        #[instrument(skip_all)]
        pub async fn delete(core: &Core, caller: &Caller, reference: &str) -> Result<(), ServiceError> {
            bulk::delete_one::<_, $resource>(core, caller, reference).await
        }
    };
}
pub(super) use operations;
