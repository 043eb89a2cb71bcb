// As Xcode has written it, but for @objc and #keyPath.
// swift-format-ignore-file

import CoreData
import Foundation

#if canImport(ObjectiveC)
@objc(ShelfObject)
#endif
final class ShelfObject: NSManagedObject {
    @nonobjc class func fetchRequest() -> NSFetchRequest<ShelfObject> {
        return NSFetchRequest<ShelfObject>(entityName: "Shelf")
    }

    @NSManaged var name: String?
    @NSManaged var rank: Int16
    @NSManaged var media: NSOrderedSet?

    static func byName() -> NSSortDescriptor {
        NSSortDescriptor(key: "name", ascending: true)
    }
}

// MARK: Generated accessors for media
extension ShelfObject {

    #if canImport(ObjectiveC)
    @objc(insertObject:inMediaAtIndex:)
    #endif
    @NSManaged func insertIntoMedia(_ value: Medium, at idx: Int)

    #if canImport(ObjectiveC)
    @objc(removeObjectFromMediaAtIndex:)
    #endif
    @NSManaged func removeFromMedia(at idx: Int)

    #if canImport(ObjectiveC)
    @objc(insertMedia:atIndexes:)
    #endif
    @NSManaged func insertIntoMedia(_ values: [Medium], at indexes: NSIndexSet)

    #if canImport(ObjectiveC)
    @objc(removeMediaAtIndexes:)
    #endif
    @NSManaged func removeFromMedia(at indexes: NSIndexSet)

    #if canImport(ObjectiveC)
    @objc(replaceObjectInMediaAtIndex:withObject:)
    #endif
    @NSManaged func replaceMedia(at idx: Int, with value: Medium)

    #if canImport(ObjectiveC)
    @objc(replaceMediaAtIndexes:withMedia:)
    #endif
    @NSManaged func replaceMedia(at indexes: NSIndexSet, with values: [Medium])

    #if canImport(ObjectiveC)
    @objc(addMediaObject:)
    #endif
    @NSManaged func addToMedia(_ value: Medium)

    #if canImport(ObjectiveC)
    @objc(removeMediaObject:)
    #endif
    @NSManaged func removeFromMedia(_ value: Medium)

    #if canImport(ObjectiveC)
    @objc(addMedia:)
    #endif
    @NSManaged func addToMedia(_ values: NSOrderedSet)

    #if canImport(ObjectiveC)
    @objc(removeMedia:)
    #endif
    @NSManaged func removeFromMedia(_ values: NSOrderedSet)

}
