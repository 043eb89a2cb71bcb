/// Gathers what one call of `save()` saves, saves of its handlers included.
///
/// Confined to the saving context's queue.
final class SaveCollector {
    private var messages: [ChangeMessage] = []
    /// Contexts that merge what was gathered, and are not told of it otherwise.
    private let targets: Set<ObjectIdentifier>

    init(for contexts: [NSManagedObjectContext]) { targets = Set(contexts.map(ObjectIdentifier.init)) }

    func add(_ message: ChangeMessage) { messages.append(message) }

    func serves(_ context: NSManagedObjectContext) -> Bool { targets.contains(ObjectIdentifier(context)) }

    /// What was gathered.
    var message: ChangeMessage { ChangeMessage(coalescing: messages) }
}
