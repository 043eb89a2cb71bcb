import CoreDataEssentials
import Foundation

extension NSPersistentStoreCoordinator {
    /// Opens the store that a description describes, on a background queue if the description says so.
    ///
    /// - Parameters:
    ///   - storeDescription: The store to open, and its options.
    ///   - block: Called once, with the error if there was one. It is called before this method returns, unless the
    ///     store is added asynchronously.
    public func addPersistentStore(
        with storeDescription: NSPersistentStoreDescription,
        completionHandler block: @escaping (NSPersistentStoreDescription, (any Error)?) -> Void
    ) {
        let request = AddRequest(coordinator: self, description: storeDescription, handler: block)
        guard storeDescription.shouldAddStoreAsynchronously else { return request.run() }
        DispatchQueue.global().async { request.run() }
    }
}

/// The pending request to add the store of a description, perhaps on another queue.
private final class AddRequest: @unchecked Sendable {
    // @unchecked Sendable: the properties are constants; the caller does not use the description until the handler was
    // called.
    private let coordinator: NSPersistentStoreCoordinator
    private let description: NSPersistentStoreDescription
    private let handler: (NSPersistentStoreDescription, (any Error)?) -> Void

    init(
        coordinator: NSPersistentStoreCoordinator,
        description: NSPersistentStoreDescription,
        handler: @escaping (NSPersistentStoreDescription, (any Error)?) -> Void
    ) {
        self.coordinator = coordinator
        self.description = description
        self.handler = handler
    }

    func run() {
        var failure: (any Error)?
        do {
            try coordinator.addPersistentStore(
                ofType: description.type,
                configurationName: description.configuration,
                at: description.url,
                options: description.allOptions
            )
        } catch {
            failure = error
        }
        handler(description, failure)
    }
}
