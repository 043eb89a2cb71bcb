import StrataRows

extension NSManagedObject {
    /// The unsaved changes of a to-many relationship, which other contexts' changes of the same relationship are apart from.
    ///
    /// - Parameter name: The name of the relationship.
    /// - Returns: The members that were added, and those that were removed, since the last save or fetch.
    package final func unsavedMembers(of name: String) -> (added: Set<NSManagedObject>, removed: Set<NSManagedObject>) {
        guard case .toMany(let index)? = layout.places[name], let state = extras?.toMany[index] else { return ([], []) }
        func objects(_ members: MemberSet) -> Set<NSManagedObject> {
            collection(of: layout.toMany[index], Array(members)) as? Set<NSManagedObject> ?? []
        }
        return (objects(state.added), objects(state.removed))
    }
}
