/// Collects everything that one call of `save()` saves, including saves that its handlers make.
///
/// Confined to the saving context's queue.
final class SaveCollector {
    private var messages: [ChangeMessage] = []
    /// The contexts that merge the collected changes; they are not informed of them in any other way.
    private let targets: Set<ObjectIdentifier>

    init(for contexts: [NSManagedObjectContext]) { targets = Set(contexts.map(ObjectIdentifier.init)) }

    func add(_ message: ChangeMessage) { messages.append(message) }

    func serves(_ context: NSManagedObjectContext) -> Bool { targets.contains(ObjectIdentifier(context)) }

    /// The collected changes as one message.
    var message: ChangeMessage { ChangeMessage(coalescing: messages) }
}
