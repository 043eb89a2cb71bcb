import CoreDataEssentials
import Foundation

// The names by which observers name the types of messages.

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSManagedObjectContext.WillSaveMessage> {
    /// The identifier of ``NSManagedObjectContext/WillSaveMessage``.
    public static var willSave: Self { Self() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSManagedObjectContext.DidSaveMessage> {
    /// The identifier of ``NSManagedObjectContext/DidSaveMessage``.
    public static var didSave: Self { Self() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSManagedObjectContext.DidSaveObjectIDsMessage> {
    /// The identifier of ``NSManagedObjectContext/DidSaveObjectIDsMessage``.
    public static var didSaveObjectIDs: Self { Self() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSManagedObjectContext.DidSaveObjectIDsAsyncMessage> {
    /// The identifier of ``NSManagedObjectContext/DidSaveObjectIDsAsyncMessage``.
    public static var didSaveObjectIDsAsync: Self { Self() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSManagedObjectContext.ObjectsDidChangeMessage> {
    /// The identifier of ``NSManagedObjectContext/ObjectsDidChangeMessage``.
    public static var objectsDidChange: Self { Self() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSManagedObjectContext.DidMergeChangesMessage> {
    /// The identifier of ``NSManagedObjectContext/DidMergeChangesMessage``.
    public static var didMergeChanges: Self { Self() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSManagedObjectContext.DidMergeChangesAsyncMessage> {
    /// The identifier of ``NSManagedObjectContext/DidMergeChangesAsyncMessage``.
    public static var didMergeChangesAsync: Self { Self() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSPersistentStoreCoordinator.StoresDidChangeMessage> {
    /// The identifier of ``NSPersistentStoreCoordinator/StoresDidChangeMessage``.
    public static var storesDidChange: Self { Self() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSPersistentStoreCoordinator.StoresDidChangeAsyncMessage> {
    /// The identifier of ``NSPersistentStoreCoordinator/StoresDidChangeAsyncMessage``.
    public static var storesDidChangeAsync: Self { Self() }
}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<NSPersistentStoreCoordinator.RemoteChangeMessage> {
    /// The identifier of ``NSPersistentStoreCoordinator/RemoteChangeMessage``.
    public static var remoteChange: Self { Self() }
}
