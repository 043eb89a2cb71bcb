import CoreData
import Foundation

/// The stack of the app, as it is written on Apple's platforms.
public enum LibraryStack {
    /// The model as most apps find it: compiled, in the bundle.
    public static var compiledModel: NSManagedObjectModel? {
        Bundle.module.url(forResource: "Library", withExtension: "momd").flatMap(NSManagedObjectModel.init(contentsOf:))
    }

    /// The model as it is edited.
    public static var editedModel: NSManagedObjectModel? {
        Bundle.module.url(forResource: "Library", withExtension: "xcdatamodeld")
            .flatMap(NSManagedObjectModel.init(contentsOf:))
    }

    /// One version of the model, as code for migrations finds it.
    public static func version(_ name: String) -> NSManagedObjectModel? {
        Bundle.module.url(forResource: name, withExtension: "mom", subdirectory: "Library.momd")
            .flatMap(NSManagedObjectModel.init(contentsOf:))
    }
}
