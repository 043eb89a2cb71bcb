extension NSManagedObjectContext {
    /// Lets all saves of the context pass without validation, for an import that relates objects after they were saved.
    package final func savesWithoutValidation() { settings.savesUnvalidated = true }
}
