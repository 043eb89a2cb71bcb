// What a store of one's own asks of the context that saves into it.

extension NSManagedObjectContext {
    /// The objects that the save may have to write, in the order of their first change.
    final var changedList: [NSManagedObject] { changeTracker.objects }
}
