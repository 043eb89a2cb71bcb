import StrataRows

extension NSManagedObjectContext: NamedScope {
    package final var scopeName: String? { name }
}
