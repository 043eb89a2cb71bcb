/// The members that migrations and imports use; inside the scope of the context.
extension NSManagedObjectContext {
    /// The number of objects that the context has registered.
    package final var registeredCount: Int {
        identityMap.tables.reduce(identityMap.temporaryObjects.count) { $0 + ($1?.count ?? 0) }
    }

    /// Turns off validation for all saves of the context, for work that relates objects after they were saved.
    package final func savesWithoutValidation() { settings.savesUnvalidated = true }
}
